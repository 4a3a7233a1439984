#include "ring.h"

#include <stdlib.h>
#include <string.h>

void sweep_host(cell_t *ring, uint32_t cells, uint32_t sweeps) {
    cell_t *next = malloc(cells * sizeof(*next));
    for (uint32_t s = 0; s < sweeps; s++) {
        for (uint32_t i = 0; i < cells; i++)
            next[i] = STENCIL(ring[(i + cells - 1) % cells], ring[i], ring[(i + 1) % cells]);
        memcpy(ring, next, cells * sizeof(*next));
    }
    free(next);
}
