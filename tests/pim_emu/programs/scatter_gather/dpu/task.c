/* Rows of different lengths: whoever is free takes the next. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <perfcounter.h>

#include "rows.h"

__host arguments_t arguments;
__host uint64_t cycles;

__mram_noinit row_t rows[MAX_ROWS];
__mram_noinit uint32_t elements[MAX_ELEMENTS];
__mram_noinit uint64_t sums[MAX_ROWS];

MUTEX_INIT(next_row_mutex);
BARRIER_INIT(all_tasklets, NR_TASKLETS);

static uint32_t next_row;

static uint32_t take_row(void) {
    mutex_lock(next_row_mutex);
    const uint32_t row = next_row++;
    mutex_unlock(next_row_mutex);
    return row;
}

int main(void) {
    if (me() == 0) {
        mem_reset();
        next_row = 0;
        perfcounter_config(COUNT_CYCLES, true);
    }
    barrier_wait(&all_tasklets);

    uint32_t *cache = mem_alloc(BLOCK_SIZE);
    for (uint32_t r = take_row(); r < arguments.nr_rows; r = take_row()) {
        __dma_aligned row_t row;
        __dma_aligned uint64_t sum;
        mram_read(&rows[r], &row, sizeof(row));
        sum = scale_row(row, arguments.scale, cache);
        mram_write(&sum, &sums[r], sizeof(sum));
    }

    barrier_wait(&all_tasklets);
    if (me() == 0)
        cycles = perfcounter_get();
    return 0;
}
