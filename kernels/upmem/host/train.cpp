#include "train.hpp"

#include <algorithm>
#include <new>
#include <numeric>

namespace accel_rl::upmem {

namespace {

std::vector<uint32_t> count_visits(const Program &program, const Rows &rows, const Launch &launch) {
  std::vector<uint32_t> dpus(rows.chunks);
  std::iota(dpus.begin(), dpus.end(), 0u);
  arl_launch counted = {};
  counted.rule = program.rule;
  counted.order = program.order;
  counted.stride = program.stride;
  counted.block = program.block;
  counted.actions = program.actions;
  counted.size = program.size();
  counted.explore = launch.explore;
  counted.seed = launch.seed;
  counted.first_pass = launch.first_pass;
  counted.num_passes = launch.num_passes;
  counted.chunks = rows.chunks;
  counted.capacity = rows.capacity;
  counted.entries = program.entries();
  counted.rows = reinterpret_cast<const arl_wide_row *>(rows.words);
  counted.lengths = rows.lengths;
  counted.dpus = dpus.data();
  std::vector<uint32_t> counts(static_cast<size_t>(rows.chunks) * program.entries());
  if (arl_visits(&counted, counts.data(), 0, rows.chunks) != 0) throw std::bad_alloc();
  return counts;
}

}  // namespace

void train(Trainer &trainer, const Rows &rows, const Schedule &schedule, Launch launch, float alpha,
           void *table) {
  if (schedule.passes < 1 || schedule.period < 1)
    throw Error(Kind::invalid, "passes and period must be at least 1");
  const Program &program = trainer.program();
  std::vector<uint32_t> tables(static_cast<size_t>(rows.chunks) * program.entries());
  trainer.load_rows(rows);
  // Of one pass, where all are alike; a plain mean wants none.
  const bool constant = program.order != ARL_RAN_REPLACEMENT && program.tables() == 1;
  Launch one = launch;
  one.num_passes = 1;
  const std::vector<uint32_t> of_a_pass =
      constant && schedule.merge != Merge::mean ? count_visits(program, rows, one)
                                                : std::vector<uint32_t>(tables.size());
  for (uint32_t left = schedule.passes; left > 0; left -= launch.num_passes) {
    launch.num_passes = std::min(left, schedule.period);
    trainer.run(launch, table, tables.data());
    std::vector<uint32_t> visits = of_a_pass;
    if (!constant && schedule.merge != Merge::mean) visits = count_visits(program, rows, launch);
    if (constant)
      for (uint32_t &count : visits) count *= launch.num_passes;
    merge(schedule.merge, program.numerics, rows.chunks, program.entries(), tables.data(), table,
          visits.data(), alpha, table);
    launch.first_pass += launch.num_passes;
  }
}

}  // namespace accel_rl::upmem
