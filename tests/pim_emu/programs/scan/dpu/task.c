/* Prefix sums: scan in each DPU, then add what lies before. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <stdint.h>

#include "../support/common.h"
#include "chain.h"

__host dpu_arguments_t DPU_INPUT_ARGUMENTS;
__host dpu_results_t DPU_RESULTS[NR_TASKLETS];

/* Sum of the blocks of all earlier rounds. */
T running_total;

BARRIER_INIT(my_barrier, NR_TASKLETS);

extern int main_kernel1(void);
extern int main_kernel2(void);

int (*kernels[nr_kernels])(void) = {main_kernel1, main_kernel2};

int main(void) {
    return kernels[DPU_INPUT_ARGUMENTS.kernel]();
}

static void begin(unsigned int tasklet_id) {
    if (tasklet_id == 0) {
        mem_reset();
        perfcounter_config(COUNT_CYCLES, true);
        running_total = 0;
    }
    barrier_wait(&my_barrier);
}

static T scan_block(T *block) {
    T sum = 0;
    for (unsigned int j = 0; j < REGS; j++) {
        sum += block[j];
        block[j] = sum;
    }
    return sum;
}

static void add_to_block(T *block, T value) {
    for (unsigned int j = 0; j < REGS; j++)
        block[j] += value;
}

int main_kernel1() {
    const unsigned int tasklet_id = me();
    begin(tasklet_id);

    const uint32_t size = DPU_INPUT_ARGUMENTS.size;
    uint32_t mram_addr = (uint32_t)DPU_MRAM_HEAP_POINTER + tasklet_id * BLOCK_SIZE;
    T *cache = (T *)mem_alloc(BLOCK_SIZE);

    for (uint32_t done = 0; done < size; done += BLOCK_SIZE * NR_TASKLETS) {
        mram_read((__mram_ptr void const *)mram_addr, cache, BLOCK_SIZE);
        const T l_total = scan_block(cache);
        const T before = handshake_chain(tasklet_id, l_total) + running_total;
        barrier_wait(&my_barrier);
        if (tasklet_id == NR_TASKLETS - 1)
            running_total = before + l_total;
        add_to_block(cache, before);
        mram_write(cache, (__mram_ptr void *)mram_addr, BLOCK_SIZE);
        mram_addr += BLOCK_SIZE * NR_TASKLETS;
        barrier_wait(&my_barrier);
    }

    DPU_RESULTS[tasklet_id].total = running_total;
    DPU_RESULTS[tasklet_id].cycles = perfcounter_get();
    return 0;
}

int main_kernel2() {
    const unsigned int tasklet_id = me();
    begin(tasklet_id);

    const uint32_t mram_base_addr = (uint32_t)DPU_MRAM_HEAP_POINTER;
    T *cache = (T *)mem_alloc(BLOCK_SIZE);
    for (uint32_t byte_index = tasklet_id * BLOCK_SIZE; byte_index < DPU_INPUT_ARGUMENTS.size;
         byte_index += BLOCK_SIZE * NR_TASKLETS) {
        mram_read((__mram_ptr void const *)(mram_base_addr + byte_index), cache, BLOCK_SIZE);
        add_to_block(cache, DPU_INPUT_ARGUMENTS.base);
        mram_write(cache, (__mram_ptr void *)(mram_base_addr + byte_index), BLOCK_SIZE);
    }

    DPU_RESULTS[tasklet_id].cycles += perfcounter_get();
    return 0;
}
