// What the host and the DPU program of associative searches have in common: variables by which they
// talk, and layouts.

#ifndef ACCEL_RL_UPMEM_MATCH_H
#define ACCEL_RL_UPMEM_MATCH_H

#include <stdint.h>

enum {
  ARL_MATCH_GROUP = 64,     // slots whose match lines are one DMA granule
  ARL_MATCH_QUERIES = 256,  // most of a launch that finds a union
  ARL_MATCH_FEW = 32,       // ranges whose union is found in fewer steps
  ARL_MATCH_COUNTED = 64,   // most of a launch that answers each by itself
  ARL_MATCH_UPDATES = 512,  // most of a DPU in one launch
};

typedef enum {
  ARL_MATCH_TERNARY,      // each query: keys that equal `first` in the bits of `second`
  ARL_MATCH_RANGE,        // each query: keys from `first` to `first + second`
  ARL_MATCH_ANY_TERNARY,  // the union of ternary queries
  ARL_MATCH_ANY_OF_FEW,   // the union of ARL_MATCH_FEW ranges, ascending and disjoint, or repeated
  ARL_MATCH_ANY_OF_MANY,  // the same of ARL_MATCH_QUERIES ranges
  ARL_MATCH_UPDATE,       // no search: slots get new keys
} arl_match_work;

// Host variable `queries`. Of a ternary query `first` has no bits that `second` lacks.
typedef struct {
  uint32_t first, second;
} arl_match_query;

// Host variable `updates`. No slot is there twice in a launch.
typedef struct {
  uint32_t slot;  // of the DPU; bit 31: it is valid from now on
  uint32_t key;
} arl_match_update;

#define ARL_MATCH_VALID 0x80000000u

// The same for all DPUs. Host variable `parameters`.
typedef struct {
  uint32_t work;                // of arl_match_work
  uint32_t groups;              // of a DPU
  uint32_t queries;             // of this launch
  uint32_t lines;               // 1: match lines go to MRAM, 0: matches are only counted
  uint32_t count_instructions;  // what `counted` holds: 1: instructions, 0: cycles
  uint32_t unused;
} arl_match_parameters;

// Pending updates of one DPU. Host variable `pending`.
typedef struct {
  uint32_t updates, unused;
} arl_match_pending;

// Host variable `counts`, uint32 [ARL_MATCH_COUNTED]: matches of each query; of a union, the first.
// Host variable `counted`, uint64: what a DPU counted in the last launch.
// MRAM heap: keys of all groups; valid bits, a word of 64 for each group; match lines, such words
// for each query. Bit i % 64 of word i / 64 is slot i.

_Static_assert(sizeof(arl_match_parameters) % 8 == 0, "transfers want 8 bytes");

#endif
