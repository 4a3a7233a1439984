// Tables, mailbox and snapshots in this process, without a server.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "batch.hpp"
#include "bindings.hpp"
#include "errors.hpp"
#include "snapshot.hpp"
#include "view.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace accel_rl::replay::bindings {

namespace {

using ColumnTuple = std::tuple<std::string, std::string, std::vector<uint32_t>>;
using Ratio = std::tuple<double, double, double>;  // samples per insert, least and most difference

constexpr const char *samplers[] = {"uniform", "prioritised", "amper_fr"};

Sampler sampler_of(const std::string &name) {
  for (uint8_t k = 0; k < 3; ++k)
    if (name == samplers[k]) return static_cast<Sampler>(k);
  throw Error(Status::bad_config, "sampler must be uniform, prioritised or amper_fr, got " + name);
}

std::shared_ptr<Table> make_table(const std::string &name, uint32_t capacity,
                                  const std::vector<ColumnTuple> &columns,
                                  const std::string &sampler, float priority_exponent,
                                  uint64_t min_size, std::optional<Ratio> ratio, uint32_t groups,
                                  float csp_ratio, float max_priority) {
  TableConfig config;
  config.name = name, config.capacity = capacity;
  config.sampler = sampler_of(sampler), config.priority_exponent = priority_exponent;
  for (const auto &[column, code, shape] : columns) {
    Dtype dtype;
    if (!dtype_from_code(code.c_str(), &dtype))
      throw Error(Status::bad_config, "column " + column + ": there is no dtype " + code);
    config.columns.push_back({column, dtype, shape});
  }
  config.limiter.min_size = min_size;
  if (ratio) {
    config.limiter.active = true;
    std::tie(config.limiter.samples_per_insert, config.limiter.min_diff, config.limiter.max_diff) =
        *ratio;
  }
  config.amper = {groups, csp_ratio};
  config.max_priority = max_priority;
  std::unique_ptr<Table> table;
  std::string why;
  expect_ok(Table::make(config, &table, &why), why);
  return table;
}

std::string why_refused(Status status, const Table &table, uint32_t count) {
  switch (status) {
    case Status::bad_count:
      return "the number of items must be from 1 to " + std::to_string(table.config().capacity) +
             ", got " + std::to_string(count);
    case Status::bad_priority:
      return "priorities must be finite and at least 0";
    case Status::bad_slot:
      return "slots must be below " + std::to_string(table.config().capacity);
    case Status::retry:
      return "the limiter lets nothing in now";
    default:
      return name_of(status);
  }
}

// Columns as views, and the number of items that all of them hold.
uint32_t view_columns(const TableConfig &config, const nb::sequence &columns,
                      std::vector<View> *views) {
  if (nb::len(columns) != config.columns.size())
    throw Error(Status::bad_length, "columns must be " + std::to_string(config.columns.size()) +
                                        " arrays, got " + std::to_string(nb::len(columns)));
  views->reserve(config.columns.size());
  for (size_t k = 0; k < config.columns.size(); ++k) {
    const Column &column = config.columns[k];
    views->emplace_back(columns[k], column.name.c_str(), column.dtype, false);
    const View &view = views->back();
    if (view.rows() != views->front().rows() || view.bytes() != view.rows() * column.bytes())
      throw Error(Status::bad_length, "column " + column.name + " must have " +
                                          std::to_string(views->front().rows()) + " items of " +
                                          std::to_string(column.bytes()) + " bytes, got " +
                                          std::to_string(view.rows()) + " in " +
                                          std::to_string(view.bytes()) + " bytes");
  }
  const size_t count = views->front().rows();
  // The table refuses, and counts, more than its capacity.
  return static_cast<uint32_t>(std::min<size_t>(count, UINT32_MAX));
}

void push(Table *table, const nb::sequence &columns, nb::object priorities) {
  std::vector<View> views;
  const uint32_t count = view_columns(table->config(), columns, &views);
  std::vector<const std::byte *> pointers;
  for (const View &view : views) pointers.push_back(view.as<const std::byte>());
  const float *given = nullptr;
  std::optional<View> view;
  if (!priorities.is_none()) {
    view.emplace(priorities, "priorities", Dtype::f4, false);
    if (view->bytes() != count * sizeof(float))
      throw Error(Status::bad_length, "priorities must be " + std::to_string(count) + ", got " +
                                          std::to_string(view->bytes() / sizeof(float)));
    given = view->as<const float>();
  }
  const Status status = table->push(count, pointers.data(), given);
  expect_ok(status, why_refused(status, *table, count));
}

std::tuple<uint32_t, uint32_t> update(Table *table, nb::object slots, nb::object generations,
                                      nb::object priorities) {
  const View slot_view(slots, "slots", Dtype::u4, false);
  const View generation_view(generations, "generations", Dtype::u4, false);
  const View priority_view(priorities, "priorities", Dtype::f4, false);
  if (slot_view.bytes() != generation_view.bytes() || slot_view.bytes() != priority_view.bytes())
    throw Error(Status::bad_length, "slots, generations and priorities must be equally many");
  if (slot_view.bytes() / sizeof(uint32_t) > UINT32_MAX)
    throw Error(Status::bad_count, "at most 2^32 - 1 priorities can be updated");
  UpdateCounts counts;
  const auto count = static_cast<uint32_t>(slot_view.bytes() / sizeof(uint32_t));
  const Status status =
      table->update(count, slot_view.as<const uint32_t>(), generation_view.as<const uint32_t>(),
                    priority_view.as<const float>(), &counts);
  expect_ok(status, why_refused(status, *table, count));
  return {counts.applied, counts.stale};
}

nb::dict stats(const Table &table) {
  const Stats now = table.stats();
  nb::dict all;
  all["inserts"] = now.inserts, all["samples"] = now.samples, all["updates"] = now.updates;
  all["stale"] = now.stale, all["size"] = now.size, all["refused"] = now.refused;
  all["waited"] = now.waited, all["capped"] = now.capped;
  return all;
}

// A writer that keeps what it writes alive.
class Snapshot {
 public:
  Snapshot(const std::string &path, std::vector<std::shared_ptr<Table>> tables,
           std::shared_ptr<Mailbox> mailbox)
      : tables_(std::move(tables)) {
    std::vector<Table *> plain;
    for (const auto &table : tables_) plain.push_back(table.get());
    std::string why;
    const Status status = writer_.begin(path, plain, mailbox.get(), &why);
    expect_ok(status, why);
  }
  bool step(size_t bytes) {
    std::string why;
    const Status status = writer_.step(bytes, &why);
    expect_ok(status, why);
    return writer_.written();
  }
  void finish() {
    std::string why;
    Status status;
    {
      const nb::gil_scoped_release others_go_on;
      status = writer_.finish(&why);
    }
    expect_ok(status, why);
  }
  void abandon() { writer_.abandon(); }

 private:
  std::vector<std::shared_ptr<Table>> tables_;  // outlive the writer
  SnapshotWriter writer_;
};

std::vector<std::shared_ptr<Table>> restore(const std::string &path, uint64_t most_bytes,
                                            std::shared_ptr<Mailbox> mailbox) {
  std::vector<std::unique_ptr<Table>> tables;
  std::string why;
  const Status status = restore_snapshot(path, most_bytes, &tables, mailbox.get(), &why);
  expect_ok(status, why);
  std::vector<std::shared_ptr<Table>> shared;
  for (auto &table : tables) shared.push_back(std::move(table));
  return shared;
}

}  // namespace

void bind_tables(nb::module_ &module) {
  nb::class_<Table>(module, "Table")
      .def(nb::new_(&make_table), "name"_a, "capacity"_a, "columns"_a, "sampler"_a = "prioritised",
           "priority_exponent"_a = 0.6F, "min_size"_a = 1, "ratio"_a = nb::none(), "groups"_a = 20,
           "csp_ratio"_a = 0.15F, "max_priority"_a = std::numeric_limits<float>::infinity())
      .def("push", &push, "columns"_a, "priorities"_a = nb::none())
      .def(
          "sample", [](Table *table, uint64_t seed, Batch *batch) { batch->sample(table, seed); },
          "seed"_a, "batch"_a)
      .def("update", &update, "slots"_a, "generations"_a, "priorities"_a)
      .def(
          "can_push", [](const Table &t, uint32_t n) { return t.can_push(n) == Status::ok; },
          "count"_a)
      .def(
          "can_sample", [](const Table &t, uint32_t n) { return t.can_sample(n) == Status::ok; },
          "batch"_a)
      .def("stats", &stats)
      .def_prop_ro("name", [](const Table &table) { return table.config().name; })
      .def_prop_ro("capacity", [](const Table &table) { return table.config().capacity; })
      .def_prop_ro("size", &Table::size)
      .def_prop_ro("total", &Table::total);

  nb::class_<Batch>(module, "Batch")
      .def(
          "__init__",
          [](Batch *self, const Table &table, uint32_t batch, nb::object columns) {
            new (self) Batch(table.config(), batch, std::move(columns));
          },
          "table"_a, "batch"_a, "columns"_a = nb::none())
      .def("__len__", &Batch::draws)
      .def_prop_ro("slots", [](const Batch &batch) { return batch.slots; })
      .def_prop_ro("generations", [](const Batch &batch) { return batch.generations; })
      .def_prop_ro("probabilities", [](const Batch &batch) { return batch.probabilities; })
      .def_prop_ro("columns", [](const Batch &batch) { return batch.columns; })
      .def_prop_ro("size", [](const Batch &batch) { return batch.out().size; })
      .def_prop_ro("total", [](const Batch &batch) { return batch.out().total; });

  nb::class_<Mailbox>(module, "Mailbox")
      .def(nb::init<uint64_t, uint32_t>(), "most_bytes"_a, "most_names"_a)
      .def(
          "publish",
          [](Mailbox *mailbox, const std::string &name, uint64_t version, nb::bytes data) {
            expect_ok(mailbox->publish(name, version, static_cast<const std::byte *>(data.data()),
                                       data.size()),
                      "");
          },
          "name"_a, "version"_a, "data"_a)
      .def(
          "fetch",
          [](const Mailbox &mailbox, const std::string &name,
             std::optional<uint64_t> newer_than) -> std::optional<std::tuple<uint64_t, nb::bytes>> {
            std::shared_ptr<const Message> message;
            if (mailbox.fetch(name, newer_than.value_or(0), !newer_than, &message) != Status::ok)
              return std::nullopt;
            return std::tuple(message->version,
                              nb::bytes(message->bytes.data(), message->bytes.size()));
          },
          "name"_a, "newer_than"_a = nb::none());

  nb::class_<Snapshot>(module, "Snapshot")
      .def(nb::init<const std::string &, std::vector<std::shared_ptr<Table>>,
                    std::shared_ptr<Mailbox>>(),
           "path"_a, "tables"_a, "mailbox"_a = nb::none())
      .def("step", &Snapshot::step, "bytes"_a)
      .def("finish", &Snapshot::finish)
      .def("abandon", &Snapshot::abandon);

  module.def("restore", &restore, "path"_a, "most_bytes"_a, "mailbox"_a = nb::none());
}

}  // namespace accel_rl::replay::bindings
