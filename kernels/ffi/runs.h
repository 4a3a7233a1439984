// The compiled forms of launches and merges, and the choice among them.

#ifndef ACCEL_RL_FFI_RUNS_H
#define ACCEL_RL_FFI_RUNS_H

#include "launch.h"
#include "merge.h"

// Instruction sets that passes.c and merge_entries.c are compiled for, from the least.
typedef enum { ARL_BASE, ARL_AVX2, ARL_AVX512, ARL_LEVELS } arl_level;

// The best that was compiled in and that this processor has.
arl_level arl_best_level(void);

const char *arl_level_name(arl_level level);

// The form for a numerics (ARL_FP32, ...), for one replica or for many. `level` must have been
// compiled in.
arl_run *arl_choose(int64_t numerics, int64_t replicas, arl_level level);

arl_merge_entries *arl_choose_merge(arl_level level);

#endif
