#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

typedef uint32_t cell_t;

#define BLOCK_SIZE (1 << BL)
#define BLOCK_CELLS (BLOCK_SIZE / (int)sizeof(cell_t))
#define PAIR (8 / (int)sizeof(cell_t)) /* cells of the smallest transfer */
#define HALO 8                         /* cells on either side that belong to the neighbours */
#define MAX_CELLS (1 << 16)            /* with the halo */

/* What becomes of a cell in one sweep. */
#define STENCIL(left, middle, right) (((left) + 2 * (middle) + (right) + 2) / 4)

typedef struct {
    uint32_t cells;  /* with the halo */
    uint32_t sweeps; /* at most HALO */
    uint32_t source; /* which of the two grids has the input */
    uint32_t padding;
} dpu_arguments_t;

#endif
