/* Sum of 64-bit integers. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <stdint.h>

#include "common.h"
#include "cyclecount.h"
#include "tree.h"

__host dpu_arguments_t DPU_INPUT_ARGUMENTS;
__host dpu_results_t DPU_RESULTS[NR_TASKLETS];

BARRIER_INIT(my_barrier, NR_TASKLETS);

static T reduction(const T *input, unsigned int elements) {
    T output = 0;
    for (unsigned int j = 0; j < elements; j++)
        output += input[j];
    return output;
}

int main(void) {
    const unsigned int tasklet_id = me();
    if (tasklet_id == 0) {
        mem_reset();
#if PERF
        perfcounter_config(COUNT_CYCLES, true);
#endif
    }
    barrier_wait(&my_barrier);

    dpu_results_t *result = &DPU_RESULTS[tasklet_id];
#if PERF
    perfcounter_cycles cycles;
    timer_start(&cycles);
#endif

    const uint32_t size = DPU_INPUT_ARGUMENTS.size;
    const uint32_t mram_base_addr = (uint32_t)DPU_MRAM_HEAP_POINTER;
    T *cache = (T *)mem_alloc(BLOCK_SIZE);
    T l_total = 0;
    for (unsigned int byte_index = tasklet_id * BLOCK_SIZE; byte_index < size;
         byte_index += BLOCK_SIZE * NR_TASKLETS) {
        const uint32_t l_size = size - byte_index < BLOCK_SIZE ? size - byte_index : BLOCK_SIZE;
        mram_read((__mram_ptr void const *)(mram_base_addr + byte_index), cache, l_size);
        l_total += reduction(cache, l_size / sizeof(T));
    }

    result->total = tree_reduce(tasklet_id, l_total);
#if PERF
    result->cycles = timer_stop(&cycles);
#endif
    return 0;
}
