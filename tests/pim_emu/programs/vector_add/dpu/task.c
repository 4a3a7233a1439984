/* Vector addition: tasklets take blocks in turn. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <stdint.h>
#include <stdio.h>

#include "../support/common.h"
#include "add.h"

__host dpu_arguments_t DPU_INPUT_ARGUMENTS;
__host uint64_t DPU_CYCLES[NR_TASKLETS];

BARRIER_INIT(my_barrier, NR_TASKLETS);

extern int main_kernel1(void);

int (*kernels[nr_kernels])(void) = {main_kernel1};

int main(void) {
    return kernels[DPU_INPUT_ARGUMENTS.kernel]();
}

int main_kernel1() {
    unsigned int tasklet_id = me();
#if PRINT
    printf("tasklet_id = %u\n", tasklet_id);
#endif
    if (tasklet_id == 0) {
        mem_reset();
        perfcounter_config(COUNT_CYCLES, true);
    }
    barrier_wait(&my_barrier);

    uint32_t size = DPU_INPUT_ARGUMENTS.size;
    uint32_t base_tasklet = tasklet_id << BLOCK_SIZE_LOG2;
    uint32_t mram_base_addr_A = (uint32_t)DPU_MRAM_HEAP_POINTER;
    uint32_t mram_base_addr_B = (uint32_t)(DPU_MRAM_HEAP_POINTER + DPU_INPUT_ARGUMENTS.transfer_size);

    T *cache_A = (T *)mem_alloc(BLOCK_SIZE);
    T *cache_B = (T *)mem_alloc(BLOCK_SIZE);

    for (uint32_t byte_index = base_tasklet; byte_index < size;
         byte_index += BLOCK_SIZE * NR_TASKLETS) {
        uint32_t l_size = byte_index + BLOCK_SIZE >= size ? size - byte_index : BLOCK_SIZE;

        mram_read((__mram_ptr void const *)(mram_base_addr_A + byte_index), cache_A, l_size);
        mram_read((__mram_ptr void const *)(mram_base_addr_B + byte_index), cache_B, l_size);
        vector_addition(cache_B, cache_A, l_size >> DIV);
        mram_write(cache_B, (__mram_ptr void *)(mram_base_addr_B + byte_index), l_size);
    }

    DPU_CYCLES[tasklet_id] = perfcounter_get();
    return 0;
}
