#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

#define BLOCK_SIZE (1 << BL) /* bytes */

typedef uint64_t T;

typedef struct {
    uint32_t size; /* bytes of input in this DPU */
    uint32_t padding;
} dpu_arguments_t;

typedef struct {
    T total; /* of the tasklet; tasklet 0 has that of the DPU */
    uint64_t cycles;
} dpu_results_t;

#endif
