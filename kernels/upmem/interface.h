// What the host and the DPU programs have in common: variables by which they talk, and layouts.

#ifndef ACCEL_RL_UPMEM_INTERFACE_H
#define ACCEL_RL_UPMEM_INTERFACE_H

#include <stdint.h>

// Parameters of a launch, the same for all DPUs. Host variable `parameters`.
typedef struct {
  uint32_t seed, first_pass, num_passes;
  uint32_t alpha, gamma, epsilon;  // bits of table entries
  uint32_t explore;                // epsilon in 1/65,536
  uint32_t wide;                   // 1: rows are of 16 bytes, 0: of 8 bytes, with a codebook
  uint32_t count_instructions;     // what `counted` holds: 1: instructions, 0: cycles
  uint32_t listed;                 // entries of `visited`, a multiple of 4; 0: there is no list
} arl_parameters;

// Chunk of one DPU. Host variable `chunk`.
typedef struct {
  uint32_t length;  // rows
  uint32_t dpu;     // global index
} arl_chunk;

// Distinct rewards of 8-byte records. Host variable `codebook`.
enum { ARL_CODEBOOK = 256 };

// Host variable `counted`, uint64: what a DPU counted in the last launch.
// MRAM variable `tables`: entries, K * S * A rounded up to an even number. A launch with a list
// leaves the listed entries of each table at its front, K * listed of them, in place of all.
// MRAM variable `visited`: that list, sorted entries of the chunk's rows; zeros where it is shorter
// than another DPU's. WRAM holds fewer entries than 16 bits count.
// MRAM heap: the rows of the chunk.

_Static_assert(sizeof(arl_parameters) % 8 == 0 && sizeof(arl_chunk) == 8, "transfers want 8 bytes");

#endif
