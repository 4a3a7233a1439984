/* What the host and the DPUs agree on. */
#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

#define BLOCK_SIZE_LOG2 BL
#define BLOCK_SIZE (1 << BLOCK_SIZE_LOG2) /* bytes of one transfer between MRAM and WRAM */

#if defined(INT64)
typedef int64_t T;
#define DIV 3 /* log2 of the size */
#elif defined(FLOAT)
typedef float T;
#define DIV 2
#else
typedef int32_t T;
#define DIV 2
#endif

typedef struct {
    uint32_t size;          /* bytes of each vector that this DPU adds */
    uint32_t transfer_size; /* bytes between the two vectors in MRAM */
    enum kernels {
        kernel_add = 0,
        nr_kernels = 1,
    } kernel;
} dpu_arguments_t;

#define divceil(n, m) (((n) + (m) - 1) / (m))
#define roundup(n, m) (divceil(n, m) * (m))

#endif
