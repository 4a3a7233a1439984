// The compiled forms of a launch, and the choice among them.

#ifndef ACCEL_RL_FFI_RUNS_H
#define ACCEL_RL_FFI_RUNS_H

#include "launch.h"
#include "owned.h"

// Instruction sets that passes are compiled for, from the least.
typedef enum { ARL_BASE, ARL_AVX2, ARL_AVX512, ARL_LEVELS } arl_level;

// The best that was compiled in and that this processor has.
arl_level arl_best_level(void);

const char *arl_level_name(arl_level level);

// The form for a numerics (ARL_FP32, ...), for one replica or for many. `level` must have been
// compiled in.
arl_run *arl_choose(int64_t numerics, int64_t replicas, arl_level level);

// The same of owned_passes.c: the widest vectors up to `level` that so many lanes fill.
arl_owned_run *arl_choose_owned(int64_t numerics, int64_t lanes, arl_level level);

#endif
