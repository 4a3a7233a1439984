#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

#define BLOCK_SIZE (1u << BL) /* bytes */
#define DEPTH 12              /* bits of a pixel */

typedef uint16_t pixel_t;

enum kernel {
    KERNEL_SHARED,  /* one histogram; a pool of mutexes guards its bins */
    KERNEL_PRIVATE, /* one for each tasklet, merged under a mutex */
    NR_KERNELS
};

struct dpu_arguments {
    uint32_t pixels;
    uint32_t transfer_size; /* bytes that the pixels take in MRAM; the histogram follows */
    uint32_t kernel;
    uint32_t padding;
};

struct dpu_results {
    uint64_t cycles;
};

#endif
