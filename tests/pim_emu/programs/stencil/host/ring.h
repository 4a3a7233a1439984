#ifndef RING_H
#define RING_H

#include "common.h"

/* Sweeps over a ring of cells: what the DPUs are to compute. */
void sweep_host(cell_t *ring, uint32_t cells, uint32_t sweeps);

#endif
