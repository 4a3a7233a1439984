// The forms of a merge: of the tables of all DPUs, compiled for each instruction set, and of runs.

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
  int64_t count, entries;   // G = D * E, or the number of runs, up to INT32_MAX; and E
  int64_t dpus;             // D, up to INT32_MAX; of tables only
  const void *values;       // [G]: tables [D][E], or values of runs
  const void *base;         // [E], the last broadcast table; of tables not read by ARL_MEAN
  const uint32_t *visits;   // [G]; not read by ARL_MEAN
  const uint32_t *weights;  // [256], by visits; read by ARL_DAMPED only
  // Of runs only: where those of entry e are, from places[begins[e]] to before places[ends[e]].
  const int32_t *places, *begins, *ends;  // [G], [E], [E]
  void *merged;                           // [E]
} arl_merge_call;

// Merge entries first ... last - 1. Returns 0, or nonzero where runs lie beyond G; whatever their
// places are, nothing outside of the operands is touched.
typedef int arl_merge_entries(const arl_merge_call *call, int64_t first, int64_t last);

arl_merge_entries arl_merge_runs;

#endif
