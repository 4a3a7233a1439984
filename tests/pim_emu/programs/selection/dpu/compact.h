#ifndef COMPACT_H
#define COMPACT_H

#include "common.h"

/* Copy the records that are selected to the front of `output`; returns their number. */
unsigned int compact(record_t *output, const record_t *input, unsigned int records,
                     int32_t threshold);

#endif
