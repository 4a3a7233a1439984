#include <defs.h>

#include "sweep.h"

/* A block with a pair of cells on either side, and what becomes of it. */
__dma_aligned static cell_t input[NR_TASKLETS][PAIR + BLOCK_CELLS + PAIR];
__dma_aligned static cell_t output[NR_TASKLETS][BLOCK_CELLS];

static void sweep_block(cell_t *restrict out, const cell_t *restrict in, int n) {
    for (int i = 0; i < n; i++)
        out[i] = STENCIL(in[i - 1], in[i], in[i + 1]);
}

void sweep(__mram_ptr cell_t const *from, __mram_ptr cell_t *to, uint32_t cells) {
    const unsigned int id = me();
    for (uint32_t first = id * BLOCK_CELLS; first < cells; first += BLOCK_CELLS * NR_TASKLETS) {
        const uint32_t n = cells - first < BLOCK_CELLS ? cells - first : BLOCK_CELLS;
        const uint32_t before = first != 0 ? PAIR : 0;
        const uint32_t after = first + n < cells ? PAIR : 0;
        mram_read(from + first - before, &input[id][PAIR - before],
                  (before + n + after) * sizeof(cell_t));

        cell_t *in = &input[id][PAIR];
        sweep_block(output[id], in, n);
        if (before == 0)
            output[id][0] = in[0];
        if (after == 0)
            output[id][n - 1] = in[n - 1];
        mram_write(output[id], to + first, n * sizeof(cell_t));
    }
}
