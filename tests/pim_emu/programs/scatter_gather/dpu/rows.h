#ifndef ROWS_H
#define ROWS_H

#include <mram.h>

#include "common.h"

extern __mram_noinit uint32_t elements[MAX_ELEMENTS];

/* Scale a row where it lies; returns the sum of its new elements. */
uint64_t scale_row(row_t row, uint32_t scale, uint32_t *cache);

#endif
