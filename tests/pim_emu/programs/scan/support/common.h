#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

#define BLOCK_SIZE (1 << BL)                /* bytes */
#define REGS (BLOCK_SIZE / (int)sizeof(T)) /* elements of a block */

typedef int64_t T;

typedef struct {
    uint32_t size; /* bytes, a multiple of NR_TASKLETS blocks */
    enum kernels {
        kernel_scan = 0, /* inclusive prefix sums of this DPU's elements */
        kernel_add = 1,  /* add what lies in the DPUs before */
        nr_kernels = 2,
    } kernel;
    T base;
} dpu_arguments_t;

typedef struct {
    T total;
    uint64_t cycles;
} dpu_results_t;

#endif
