// A launch: passes of one program over the chunks of many DPUs, each from the same tables or from
// its own.

#ifndef ACCEL_RL_FFI_LAUNCH_H
#define ACCEL_RL_FFI_LAUNCH_H

#include <stdint.h>

#include "record.h"

typedef struct {
  // Values of arl_rule and arl_order, and the fields of arl_program.
  int32_t rule, order;
  uint32_t stride, block, actions, size, explore;
  uint32_t seed, first_pass, num_passes;
  int64_t chunks, capacity, entries, replicas;  // D, T, E = K * S * A, R
  int64_t starts;                               // G: 1, or D where each chunk has its own tables
  const arl_wide_row *rows;                     // [D][T]
  const int32_t *lengths;                       // [D], rows that are real
  const uint32_t *dpus;                         // [D], global indices
  const void *table;                            // [R][G][E], entries
  const void *rates;                            // [3][R], entries: alpha, gamma, epsilon
  void *tables;                                 // [R][D][E], entries, the result
} arl_launch;

// Lanes of a tile: replicas that one thread trains side by side.
enum { ARL_TILE = 64 };

// Work that threads share: a chunk, for a tile of replicas.
static inline int64_t arl_tiles(const arl_launch *launch) {
  return (launch->replicas + ARL_TILE - 1) / ARL_TILE;
}

// Train items first ... last - 1; item i is tile i % tiles of chunk i / tiles. Returns 0, or -1
// where memory is short.
typedef int arl_run(const arl_launch *launch, int64_t first, int64_t last);

// How often passes visit each entry: counts uint32 [D][E], for chunks first ... last - 1. Uses
// neither table, rates nor tables of the launch.
int arl_visits(const arl_launch *launch, uint32_t *counts, int64_t first, int64_t last);

#endif
