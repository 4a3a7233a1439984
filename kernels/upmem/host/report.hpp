// What was done on a set of DPUs.

#ifndef ACCEL_RL_UPMEM_REPORT_HPP
#define ACCEL_RL_UPMEM_REPORT_HPP

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace accel_rl::upmem {

// What a trainer or a matcher did: bytes for each DPU, and what DPUs counted. Seconds are measured
// on the host.
struct Report {
  uint64_t dpus = 0;
  uint64_t counts_instructions = 0;  // 1: DPUs counted instructions, 0: cycles
  uint64_t loads = 0, launches = 0;  // of rows or keys; of the program
  uint64_t program_loads = 0;
  uint64_t scattered_bytes = 0;       // different to each, for all loads
  uint64_t load_broadcast_bytes = 0;  // the same to each, for all loads
  uint64_t broadcast_bytes = 0;       // the same to each, for all launches
  uint64_t pushed_bytes = 0;          // different to each, for all launches
  uint64_t gathered_bytes = 0;        // from each DPU, for all launches
  uint64_t slowest = 0;               // sum over launches of the DPU that counted most
  uint64_t counted = 0;               // sum over launches and DPUs
  double load_seconds = 0, launch_seconds = 0;

  // Add a launch, given what each DPU counted.
  void count_launch(const std::vector<uint64_t> &counts) {
    ++launches;
    slowest += *std::max_element(counts.begin(), counts.end());
    counted += std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  }
};

}  // namespace accel_rl::upmem

#endif
