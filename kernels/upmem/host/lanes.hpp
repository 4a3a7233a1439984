// Rows of the DPU program "owned": records of 8 bytes in lanes, and what each DPU needs of the
// tables.

#ifndef ACCEL_RL_UPMEM_LANES_HPP
#define ACCEL_RL_UPMEM_LANES_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common.hpp"
#include "program.hpp"

namespace accel_rl::upmem {

struct Lanes {
  std::vector<arl_lane> lanes;                 // [D][L]
  std::vector<arl_owned_row> records;          // [D][stride]
  size_t stride = 0;                           // most records of a DPU
  std::vector<std::vector<uint32_t>> entries;  // [D], of each run: its s * A + a
  std::vector<std::vector<uint32_t>> indices;  // [D], of each value of W that its rows look at
  uint32_t runs = 0, longest = 0;              // most runs of a DPU, most records of a lane
  // Bytes of the workspace with counter and runs, and with the values of the DPU with most.
  size_t results = 0, operands = 0;
};

// Divide rows that have been checked into lanes. Throws Error (invalid): a DPU has more runs than
// the program.
Lanes divide(const Program &program, const Rows &rows);

}  // namespace accel_rl::upmem

#endif
