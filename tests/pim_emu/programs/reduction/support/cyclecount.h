/* A stopwatch on the DPU's counter, which tasklet 0 has started. */
#ifndef CYCLECOUNT_H
#define CYCLECOUNT_H

#include <perfcounter.h>

typedef struct {
    perfcounter_t start;
    perfcounter_t end;
} perfcounter_cycles;

static inline void timer_start(perfcounter_cycles *cycles) {
    cycles->start = perfcounter_get();
}

static inline uint64_t timer_stop(perfcounter_cycles *cycles) {
    cycles->end = perfcounter_get();
    return (uint64_t)(cycles->end - cycles->start);
}

#endif
