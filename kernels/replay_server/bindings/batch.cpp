#include "batch.hpp"

#include "errors.hpp"

namespace nb = nanobind;

namespace accel_rl::replay::bindings {

namespace {

nb::object empty(nb::handle numpy, uint32_t batch, const std::vector<uint32_t> &shape,
                 const char *dtype) {
  nb::list all;
  all.append(batch);
  for (const uint32_t size : shape) all.append(size);
  return numpy.attr("empty")(nb::tuple(all), dtype);
}

}  // namespace

Batch::Batch(const TableConfig &config, uint32_t batch, nb::object given)
    : schema_(config.columns), draws_(batch) {
  if (batch < 1) throw nb::value_error("batch must be at least 1, got 0");
  const nb::module_ numpy = nb::module_::import_("numpy");
  slots = empty(numpy, batch, {}, "u4");
  generations = empty(numpy, batch, {}, "u4");
  probabilities = empty(numpy, batch, {}, "f8");
  out_.slots = hold<uint32_t>(slots, "slots", Dtype::u4, 4);
  out_.generations = hold<uint32_t>(generations, "generations", Dtype::u4, 4);
  out_.probabilities = hold<double>(probabilities, "probabilities", Dtype::f8, 8);
  if (!given.is_none() && nb::len(given) != schema_.size())
    throw nb::value_error("columns must be one array for each column of the table");
  for (size_t k = 0; k < schema_.size(); ++k) {
    const Column &column = schema_[k];
    const nb::object array = given.is_none()
                                 ? empty(numpy, batch, column.shape, dtype_code(column.dtype))
                                 : nb::object(given[k]);
    destinations_.push_back(
        hold<std::byte>(array, column.name.c_str(), column.dtype, column.bytes()));
    columns[column.name.c_str()] = array;
  }
  out_.columns = destinations_.data();
}

template <typename T>
T *Batch::hold(nb::handle array, const char *argument, Dtype dtype, size_t item_bytes) {
  views_.emplace_back(array, argument, dtype, true);
  const View &view = views_.back();
  if (view.rows() != draws_ || view.bytes() != draws_ * item_bytes) {
    const std::string message = std::string(argument) + " must have " + std::to_string(draws_) +
                                " rows of " + std::to_string(item_bytes) + " bytes, got " +
                                std::to_string(view.rows()) + " in " +
                                std::to_string(view.bytes()) + " bytes";
    throw nb::value_error(message.c_str());
  }
  return view.as<T>();
}

void Batch::sample(Table *table, uint64_t seed) {
  if (table->config().columns != schema_)
    throw nb::value_error("batch is of a table with other columns");
  expect_ok(table->sample(seed, draws_, &out_),
            "nothing can be drawn now: the table holds " + std::to_string(table->size()) +
                " items, of weight " + std::to_string(table->total()));
}

}  // namespace accel_rl::replay::bindings
