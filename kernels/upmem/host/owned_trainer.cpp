#include "owned_trainer.hpp"

#include <algorithm>
#include <cstring>

#include "records.hpp"
#include "timer.hpp"

namespace accel_rl::upmem {

namespace {

constexpr size_t entry_bytes = sizeof(uint32_t);
constexpr uint32_t least_shift = 3, most_shift = 11;  // of row buffers: one row, largest transfer

}  // namespace

OwnedTrainer::OwnedTrainer(const Program &program, uint32_t dpus, const std::string &profile,
                           Mode mode, bool count_instructions)
    : program_(program), dpus_count_(dpus), counted_(dpus), dpus_(dpus, profile, mode) {
  dpus_.load(program.path, program.workspace, "exchange");
  parameters_.actions = program.actions;
  parameters_.count_instructions = count_instructions;
  report_.dpus = dpus;
  report_.counts_instructions = count_instructions;
  ++report_.program_loads;
}

void OwnedTrainer::load_rows(const Rows &rows) {
  check_rows(program_, rows, dpus_count_);
  const Timer timer(report_.load_seconds);
  lanes_ = divide(program_, rows);
  const size_t buffers = std::min(program_.tasklets, program_.lanes);
  const size_t needed = lanes_.operands + (buffers << least_shift);
  const size_t lane_bytes = program_.lanes * sizeof(arl_lane);
  const size_t record_bytes = lanes_.stride * sizeof(arl_owned_row);
  dpus_.attempt([&] {
    if (needed > program_.workspace)
      throw Error(Kind::too_large, "runs and values of a DPU need " + std::to_string(needed) +
                                       " B of WRAM, " + std::to_string(program_.workspace) +
                                       " B are left: use more DPUs");
    dpus_.check_rows_fit(rows.capacity, record_bytes);
    dpus_.scatter("lanes", lanes_.lanes.data(), lane_bytes, lane_bytes);
    if (record_bytes > 0)
      dpus_.scatter(DPU_MRAM_HEAP_POINTER_NAME, lanes_.records.data(), record_bytes, record_bytes);
    dpus_.sync();
  });
  // The largest buffers that WRAM holds, but none larger than a lane.
  uint32_t shift = least_shift;
  const auto fits = [&] {
    return lanes_.operands + (buffers << (shift + 1)) <= program_.workspace;
  };
  while (shift < most_shift && lanes_.longest * sizeof(arl_owned_row) >> shift > 0 && fits())
    ++shift;
  parameters_.buffer_shift = shift;
  parameters_.operands = static_cast<uint32_t>(lanes_.operands);
  parameters_.run_bytes = static_cast<uint32_t>(lanes_.runs * entry_bytes);
  pushed_.assign(dpus_count_ * (lanes_.operands - ARL_COUNTER_BYTES) / entry_bytes, 0);
  pulled_.resize(dpus_count_ * lanes_.results / entry_bytes);
  report_.scattered_bytes += lane_bytes + record_bytes;
  ++report_.loads;
}

// Entries of runs and values of W, for each DPU its own.
void OwnedTrainer::gather_operands(const Operands &operands) {
  const auto *table = static_cast<const uint32_t *>(operands.table);
  const auto *values = static_cast<const uint32_t *>(operands.values);
  const size_t stride = pushed_.size() / dpus_count_;
  const size_t first_value = (lanes_.results - ARL_COUNTER_BYTES) / entry_bytes;
  for (uint32_t d = 0; d < dpus_count_; ++d) {
    uint32_t *to = pushed_.data() + d * stride;
    for (uint32_t k = 0; k < program_.tables(); ++k)
      for (size_t run = 0; run < lanes_.entries[d].size(); ++run)
        to[k * lanes_.runs + run] = table[k * program_.size() + lanes_.entries[d][run]];
    for (size_t k = 0; k < lanes_.indices[d].size(); ++k)
      to[first_value + k] = values[lanes_.indices[d][k]];
  }
}

void OwnedTrainer::spread_results(uint32_t *results) {
  const size_t stride = pulled_.size() / dpus_count_;
  for (uint32_t d = 0; d < dpus_count_; ++d) {
    const uint32_t *from = pulled_.data() + d * stride;
    std::memcpy(&counted_[d], from, ARL_COUNTER_BYTES);
    from += ARL_COUNTER_BYTES / entry_bytes;
    for (uint32_t k = 0; k < program_.tables(); ++k, results += program_.runs) {
      const auto end = std::copy_n(from + k * lanes_.runs, lanes_.entries[d].size(), results);
      std::fill(end, results + program_.runs, 0);
    }
  }
}

void OwnedTrainer::run(const Launch &launch, const Operands &operands, void *results) {
  const Timer timer(report_.launch_seconds);
  parameters_.seed = launch.seed;
  parameters_.first_pass = launch.first_pass;
  parameters_.num_passes = launch.num_passes;
  parameters_.alpha = launch.alpha;
  parameters_.explore = launch.explore;
  gather_operands(operands);
  const size_t pushed = lanes_.operands - ARL_COUNTER_BYTES;
  dpus_.attempt([&] {
    dpus_.broadcast("parameters", &parameters_, sizeof parameters_);
    if (pushed > 0) dpus_.scatter("exchange", pushed_.data(), pushed, pushed, ARL_COUNTER_BYTES);
    dpus_.launch();
    dpus_.gather("exchange", pulled_.data(), lanes_.results, lanes_.results);
    dpus_.sync();
  });
  spread_results(static_cast<uint32_t *>(results));
  report_.count_launch(counted_);
  report_.broadcast_bytes += sizeof parameters_;
  report_.pushed_bytes += pushed;
  report_.gathered_bytes += lanes_.results;
}

}  // namespace accel_rl::upmem
