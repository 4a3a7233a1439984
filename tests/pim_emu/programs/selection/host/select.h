#ifndef SELECT_H
#define SELECT_H

#include <stddef.h>

#include "common.h"

void make_records(record_t *records, size_t count);

/* What the DPUs are to find; returns how many there are. */
size_t select_host(record_t *output, const record_t *input, size_t count, int32_t threshold);

#endif
