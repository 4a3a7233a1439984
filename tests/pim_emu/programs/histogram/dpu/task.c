/* Histogram of an image. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>

#include "kernels.h"

__host struct dpu_arguments DPU_INPUT_ARGUMENTS;
__host struct dpu_results DPU_RESULTS;

__dma_aligned uint32_t histogram[BINS];

BARRIER_INIT(my_barrier, NR_TASKLETS);

static void (*const kernels[NR_KERNELS])(pixel_t *) = {
    [KERNEL_SHARED] = histogram_shared,
    [KERNEL_PRIVATE] = histogram_private,
};

unsigned int next_block(uint32_t *byte_index, pixel_t *cache) {
    const uint32_t bytes = DPU_INPUT_ARGUMENTS.pixels * sizeof(pixel_t);
    if (*byte_index >= bytes)
        return 0;
    const uint32_t left = bytes - *byte_index;
    const uint32_t l_size = left < BLOCK_SIZE ? left : BLOCK_SIZE;
    const uint32_t mram_addr = (uint32_t)DPU_MRAM_HEAP_POINTER + *byte_index;
    mram_read((__mram_ptr void const *)mram_addr, cache, (l_size + 7) & ~7u);
    *byte_index += BLOCK_SIZE * NR_TASKLETS;
    return l_size / sizeof(pixel_t);
}

int main() {
    const unsigned int tasklet_id = me();
    if (tasklet_id == 0) {
        mem_reset();
        perfcounter_config(COUNT_CYCLES, true);
        for (unsigned int bin = 0; bin < BINS; bin++)
            histogram[bin] = 0;
    }
    barrier_wait(&my_barrier);

    pixel_t *cache = mem_alloc(BLOCK_SIZE);
    kernels[DPU_INPUT_ARGUMENTS.kernel](cache);
    barrier_wait(&my_barrier);

    if (tasklet_id == 0) {
        const uint32_t mram_addr_histogram =
            (uint32_t)(DPU_MRAM_HEAP_POINTER + DPU_INPUT_ARGUMENTS.transfer_size);
        mram_write(histogram, (__mram_ptr void *)mram_addr_histogram, sizeof(histogram));
        DPU_RESULTS.cycles = perfcounter_get();
    }
    return 0;
}
