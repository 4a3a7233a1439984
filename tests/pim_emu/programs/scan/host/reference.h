#ifndef REFERENCE_H
#define REFERENCE_H

#include <stddef.h>

#include "common.h"

void make_input(T *input, size_t elements);

/* Inclusive prefix sums. */
void scan_host(T *output, const T *input, size_t elements);

#endif
