// Arrays that samples are written to, made once for a table and a number of draws.

#ifndef ACCEL_RL_REPLAY_BINDINGS_BATCH_HPP
#define ACCEL_RL_REPLAY_BINDINGS_BATCH_HPP

#include <nanobind/nanobind.h>

#include <vector>

#include "table.hpp"
#include "view.hpp"

namespace accel_rl::replay::bindings {

class Batch {
 public:
  // `columns`: the caller's arrays [batch, ...] in the schema's order, or None to make them. Throws
  // nanobind::python_error, type_error or value_error.
  Batch(const TableConfig &config, uint32_t batch, nanobind::object columns);

  Batch(const Batch &) = delete;
  Batch &operator=(const Batch &) = delete;

  void sample(Table *table, uint64_t seed);

  uint32_t draws() const { return draws_; }
  const SampleOut &out() const { return out_; }
  nanobind::object slots, generations, probabilities;  // NumPy arrays
  nanobind::dict columns;                              // by name

 private:
  template <typename T>
  T *hold(nanobind::handle array, const char *argument, Dtype dtype, size_t item_bytes);

  std::vector<Column> schema_;
  uint32_t draws_;
  std::vector<View> views_;
  std::vector<std::byte *> destinations_;
  SampleOut out_;
};

}  // namespace accel_rl::replay::bindings

#endif
