/* Blocks on their way from one tasklet that reads them to others that work on them. */
#ifndef RING_H
#define RING_H

#include <stdint.h>

#include "common.h"

#define END_OF_BLOCKS (UINT32_MAX)

/* Empty the ring. One tasklet calls it, before any other uses the ring. */
void ring_reset(void);

/* Put a block of MRAM in, or the news that there are no more. */
void ring_put(uint32_t block, uint32_t mram_addr);

/* Take a block out; returns its number. */
uint32_t ring_get(uint8_t *buffer);

#endif
