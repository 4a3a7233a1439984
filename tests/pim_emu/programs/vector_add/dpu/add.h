#ifndef ADD_H
#define ADD_H

#include "common.h"

/* b += a, element by element, in WRAM. */
void vector_addition(T *b, const T *a, unsigned int elements);

#endif
