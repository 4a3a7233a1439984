// How rows of experience lie in memory.

#ifndef ACCEL_RL_COMMON_RECORD_H
#define ACCEL_RL_COMMON_RECORD_H

#include <stdint.h>

// The 16-byte row of accel_rl/tabular/rows.py, nothing drawn yet: s * A + a, s' * A, the reward's
// bits as a table entry, and a' with flags above it.
typedef struct {
  uint32_t entry, next_entry, reward, meta;
} arl_wide_row;

enum { ARL_NEXT_ACTION_MASK = 0xFFFF, ARL_BOOTSTRAP_BIT = 16 };  // of meta

// The 8-byte record of docs/datasets.md; the reward is an index into a codebook of table entries.
typedef struct {
  uint16_t state_action, next_row;
  int16_t reward;
  uint8_t next_action, flags;
} arl_record;

enum { ARL_TERMINATED = 1 };  // of flags

_Static_assert(sizeof(arl_wide_row) == 16 && sizeof(arl_record) == 8, "records have no gaps");

#endif
