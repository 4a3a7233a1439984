// The forms of a merge that are compiled for each instruction set.

#ifndef ACCEL_RL_FFI_MERGE_H
#define ACCEL_RL_FFI_MERGE_H

#include <stdbool.h>
#include <stdint.h>

// In the order of MERGES in accel_rl/pim/merge.py.
typedef enum { ARL_VISITS, ARL_MEAN, ARL_VISITED, ARL_DAMPED, ARL_MERGES } arl_merge;

enum { ARL_DAMPED_WEIGHTS = 256 };

typedef struct {
  arl_merge merge;
  bool is_fp32;             // entries are float, otherwise int32_t
  int64_t dpus, entries;    // D, up to INT32_MAX, and E
  const void *tables;       // [D][E]
  const void *base;         // [E], the last broadcast table; not read by ARL_MEAN
  const uint32_t *visits;   // [D][E]; not read by ARL_MEAN
  const uint32_t *weights;  // [256], by visits; read by ARL_DAMPED only
  void *merged;             // [E]
} arl_merge_call;

// Merge entries first ... last - 1.
typedef void arl_merge_entries(const arl_merge_call *call, int64_t first, int64_t last);

#endif
