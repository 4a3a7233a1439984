// A DPU program as the host knows it: what it was compiled for.

#ifndef ACCEL_RL_UPMEM_PROGRAM_HPP
#define ACCEL_RL_UPMEM_PROGRAM_HPP

#include <cstddef>
#include <cstdint>
#include <string>

namespace accel_rl::upmem {

enum class Numerics : int32_t { fp32 = 1, int32_scaled, int32_pow2 };  // ARL_NUMERICS

struct Program {
  std::string path;
  Numerics numerics = Numerics::fp32;
  int32_t rule = 0;   // of arl_rule
  int32_t order = 0;  // of arl_order
  uint32_t stride = 4, block = 128, states = 0, actions = 0;
  uint32_t random_blocks = 1;  // most blocks of a chunk that RAN can shuffle
  // The program "owned": lanes of a DPU, and most runs; 0: the program "tabular".
  uint32_t lanes = 0, runs = 0;
  uint32_t tasklets = 16, workspace = 0;  // "owned": ARL_WORKSPACE

  uint32_t tables() const;  // K
  uint32_t size() const { return states * actions; }
  uint32_t entries() const { return tables() * size(); }
  uint32_t columns() const;  // "owned": C, of W
  size_t values() const { return (static_cast<size_t>(states) + 1) * columns(); }  // of W
};

// Tables of a launch.
struct Operands {
  const void *table;             // [entries]
  const void *values = nullptr;  // "owned": W
};

// Passes that follow each other without a merge.
struct Launch {
  uint32_t seed = 0, first_pass = 0, num_passes = 1;
  uint32_t alpha = 0, gamma = 0, epsilon = 0;  // bits of table entries
  uint32_t explore = 0;                        // epsilon in 1/65,536
  bool own_tables = false;                     // each chunk starts from a table of its own
};

// Rows of D chunks, as accel_rl/tabular/rows.py encodes them: words [D][T][4], of which the first
// lengths[d] rows are real.
struct Rows {
  const uint32_t *words;
  const int32_t *lengths;
  uint32_t chunks, capacity;  // D, T
  uint32_t first = 0;         // index of the first chunk, for random streams
};

}  // namespace accel_rl::upmem

#endif
