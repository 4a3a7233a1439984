// Entries that rows can update: where these are few, DPUs return them alone, not whole tables.

#ifndef ACCEL_RL_UPMEM_VISITED_HPP
#define ACCEL_RL_UPMEM_VISITED_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program.hpp"

namespace accel_rl::upmem {

struct Visited {
  uint32_t listed = 0;            // of each DPU, a multiple of 4; 0: tables come back whole
  std::vector<uint16_t> entries;  // [D][listed], sorted, then zeros
  std::vector<uint32_t> counts;   // [D], without the zeros
};

// Lists of rows that have been checked, if the longest is at most half of a table: the host takes
// as long to put values where they belong as it saves by not fetching the other half.
Visited list_visited(const Program &program, const Rows &rows);

// Make tables [D][entries] of the values [D][K][listed] of listed entries. All others are those
// that the launch began with: starts [entries], or with `own` [D][entries].
void expand(const Program &program, const Visited &visited, const uint32_t *starts, bool own,
            const uint32_t *values, uint32_t *tables);

}  // namespace accel_rl::upmem

#endif
