// Rows as DPUs keep them: packed records of 8 bytes, or of 16 where those do not hold them.

#ifndef ACCEL_RL_UPMEM_RECORDS_HPP
#define ACCEL_RL_UPMEM_RECORDS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program.hpp"

namespace accel_rl::upmem {

struct Records {
  bool wide = false;               // 16 bytes, without a codebook
  size_t bytes = 0;                // of a chunk, padded to the longest
  std::vector<uint64_t> data;      // [D][bytes / 8]
  std::vector<uint32_t> codebook;  // bits of rewards, [ARL_CODEBOOK]; empty if wide
};

// Throws Error (invalid): a length or an index is out of its range, or there are not as many chunks
// as DPUs.
void check_rows(const Program &program, const Rows &rows, uint32_t dpus);

// Rows that have been checked, packed.
Records pack(const Program &program, const Rows &rows);

}  // namespace accel_rl::upmem

#endif
