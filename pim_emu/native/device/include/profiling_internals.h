/* What a profiled section of code keeps for each thread. */
#ifndef DPU_PROFILING_INTERNALS_H
#define DPU_PROFILING_INTERNALS_H

#include <dpu_characteristics.h>
#include <stdint.h>

typedef struct {
    uint32_t start[NR_THREADS]; /* PROFILING_RESET_VALUE: not running */
    uint32_t count[NR_THREADS]; /* sixteenths of the cycles spent in the section */
} dpu_profiling_t;

#endif
