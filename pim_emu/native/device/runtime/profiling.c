/* Cycles spent in sections of code, by thread. */
#define DPU_PROFILING
#include <defs.h>
#include <profiling.h>

#include "runtime.h"

#define STEP_LOG2 4

static uint32_t register_now(void) {
    return (uint32_t)(engine_after(COST_PERFCOUNTER)->cycles() >> STEP_LOG2);
}

void profiling_start(dpu_profiling_t *context) {
    uint32_t *const start = &context->start[me()];
    if (*start != PROFILING_RESET_VALUE)
        engine_after(0)->fault(EMU_FAULT_LIBRARY, CALLER,
                               "profiling_start of a section that is being profiled");
    *start = register_now();
}

void profiling_stop(dpu_profiling_t *context) {
    uint32_t *const start = &context->start[me()];
    if (*start == PROFILING_RESET_VALUE)
        engine_after(0)->fault(EMU_FAULT_LIBRARY, CALLER,
                               "profiling_stop of a section that is not being profiled");
    context->count[me()] += register_now() - *start;
    *start = PROFILING_RESET_VALUE;
}
