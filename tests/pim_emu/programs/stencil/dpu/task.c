/* Sweeps of a three-point stencil over cells in MRAM, to and fro between two grids. */
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <stdint.h>

#include "common.h"
#include "sweep.h"

__host dpu_arguments_t DPU_INPUT_ARGUMENTS;
__host uint64_t DPU_CYCLES;

__mram_noinit cell_t grids[2][MAX_CELLS];

BARRIER_INIT(sweep_barrier, NR_TASKLETS);

int main(void) {
    if (me() == 0)
        perfcounter_config(COUNT_CYCLES, true);
    barrier_wait(&sweep_barrier);

    uint32_t source = DPU_INPUT_ARGUMENTS.source;
    for (uint32_t s = 0; s < DPU_INPUT_ARGUMENTS.sweeps; s++) {
        sweep(grids[source], grids[1 - source], DPU_INPUT_ARGUMENTS.cells);
        source = 1 - source;
        barrier_wait(&sweep_barrier);
    }

    if (me() == 0)
        DPU_CYCLES = perfcounter_get();
    return 0;
}
