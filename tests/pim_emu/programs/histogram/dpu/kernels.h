#ifndef KERNELS_H
#define KERNELS_H

#include <stdint.h>

#include "common.h"

extern uint32_t histogram[BINS]; /* of this DPU */

static inline unsigned int bin_of(pixel_t pixel) {
    return ((uint32_t)pixel * BINS) >> DEPTH;
}

/* The next block of pixels of a tasklet, from `*byte_index` on: how many there are, 0 at the end. */
unsigned int next_block(uint32_t *byte_index, pixel_t *cache);

void histogram_shared(pixel_t *cache);
void histogram_private(pixel_t *cache);

#endif
