// Faults of a rank, made to order.

#ifndef FAILING_DPU_H
#define FAILING_DPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Let `count` calls of a function of libdpu, from call `first` (1: the next one) on, return `status`
// and do nothing.
void failing_dpu(const char *function, uint32_t first, uint32_t count, int status);

#ifdef __cplusplus
}
#endif

#endif
