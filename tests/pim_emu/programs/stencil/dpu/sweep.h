#ifndef SWEEP_H
#define SWEEP_H

#include <mram.h>

#include "common.h"

/* This tasklet's blocks of one sweep from one grid to the other. The outermost cells are copied. */
void sweep(__mram_ptr cell_t const *from, __mram_ptr cell_t *to, uint32_t cells);

#endif
