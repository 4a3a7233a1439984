/* Cycles spent in sections of code. Nothing is counted unless DPU_PROFILING is defined (-pg). */
#ifndef DPU_PROFILING_H
#define DPU_PROFILING_H

#include <attributes.h>
#include <profiling_internals.h>

#define PROFILING_RESET_VALUE (UINT32_MAX)

#define PROFILING_INIT(_name)                                                                      \
    __used dpu_profiling_t _name = {.start = {[0 ...(NR_THREADS - 1)] = PROFILING_RESET_VALUE}}

#ifdef DPU_PROFILING
void profiling_start(dpu_profiling_t *context);
void profiling_stop(dpu_profiling_t *context);
#else
#define profiling_start(context) ((void)0)
#define profiling_stop(context) ((void)0)
#endif

#endif
