/* Checksums of blocks. Tasklet 0 reads the blocks, the others work on them. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common.h"
#include "ring.h"

#define CONSUMERS (NR_TASKLETS > 1 ? NR_TASKLETS - 1 : 1)

__host dpu_arguments_t DPU_INPUT_ARGUMENTS;
__host uint64_t DPU_CYCLES;
__host uint32_t DPU_BLOCKS[NR_TASKLETS]; /* that each tasklet worked on */

BARRIER_INIT(my_barrier, NR_TASKLETS);

static checksum_t checksum(const uint8_t *bytes) {
    checksum_t sum = {1, 0};
    for (unsigned int i = 0; i < BLOCK_SIZE; i++) {
        sum.a = (sum.a + bytes[i]) % MODULUS;
        sum.b = (sum.b + sum.a) % MODULUS;
    }
    return sum;
}

static void produce(uint32_t block) {
    ring_put(block, (uint32_t)DPU_MRAM_HEAP_POINTER + block * BLOCK_SIZE);
}

/* Work on a block; false: there are no more. */
static bool consume(uint8_t *buffer) {
    const uint32_t block = ring_get(buffer);
    if (block == END_OF_BLOCKS)
        return false;
    __dma_aligned checksum_t sum = checksum(buffer);
    const uint32_t mram_sums = (uint32_t)DPU_MRAM_HEAP_POINTER + DPU_INPUT_ARGUMENTS.output;
    mram_write(&sum, (__mram_ptr void *)(mram_sums + block * sizeof(sum)), sizeof(sum));
    DPU_BLOCKS[me()]++;
    return true;
}

int main(void) {
    const unsigned int id = me();
    if (id == 0) {
        mem_reset();
        ring_reset();
        perfcounter_config(COUNT_CYCLES, true);
    }
    DPU_BLOCKS[id] = 0;
    barrier_wait(&my_barrier);

    uint8_t *buffer = mem_alloc(BLOCK_SIZE);
    if (id == 0) {
        for (uint32_t block = 0; block < DPU_INPUT_ARGUMENTS.nr_blocks; block++) {
            produce(block);
            if (NR_TASKLETS == 1)
                consume(buffer);
        }
        for (unsigned int c = 0; c < CONSUMERS; c++) {
            produce(END_OF_BLOCKS);
            if (NR_TASKLETS == 1)
                consume(buffer);
        }
    } else {
        while (consume(buffer)) {
        }
    }

    barrier_wait(&my_barrier);
    if (id == 0) {
        DPU_CYCLES = perfcounter_get();
        printf("%u blocks in %llu cycles\n", (unsigned int)DPU_INPUT_ARGUMENTS.nr_blocks,
               (unsigned long long)DPU_CYCLES);
    }
    return 0;
}
