/* Selection: the records that satisfy a predicate, in order and without gaps. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <perfcounter.h>
#include <stdint.h>

#include "common.h"
#include "compact.h"

__host dpu_arguments_t DPU_INPUT_ARGUMENTS;
__host dpu_results_t DPU_RESULTS;

/* To a tasklet: how many records the tasklets before it have selected, in all rounds. */
uint32_t message[NR_TASKLETS];
uint32_t selected_before_round;

BARRIER_INIT(my_barrier, NR_TASKLETS);

static uint32_t handshake_sync(uint32_t l_count, unsigned int tasklet_id) {
    uint32_t p_count = selected_before_round;
    if (tasklet_id != 0) {
        handshake_wait_for(tasklet_id - 1);
        p_count = message[tasklet_id];
    }
    if (tasklet_id + 1 < NR_TASKLETS) {
        message[tasklet_id + 1] = p_count + l_count;
        handshake_notify();
    }
    return p_count;
}

int main() {
    const unsigned int tasklet_id = me();
    if (tasklet_id == 0) {
        mem_reset();
        perfcounter_config(COUNT_CYCLES, true);
        selected_before_round = 0;
    }
    barrier_wait(&my_barrier);

    const uint32_t records = DPU_INPUT_ARGUMENTS.records;
    const uint32_t mram_input = (uint32_t)DPU_MRAM_HEAP_POINTER;
    const uint32_t mram_output = mram_input + DPU_INPUT_ARGUMENTS.output;
    record_t *cache_in = (record_t *)mem_alloc(BLOCK_SIZE);
    record_t *cache_out = (record_t *)mem_alloc(BLOCK_SIZE);

    /* All tasklets take part in each round, if only to pass the count on. */
    for (uint32_t round = 0; round < records; round += BLOCK_RECORDS * NR_TASKLETS) {
        const uint32_t first = round + tasklet_id * BLOCK_RECORDS;
        uint32_t l_count = 0;
        if (first < records) {
            const uint32_t left = records - first;
            const uint32_t n = left < BLOCK_RECORDS ? left : BLOCK_RECORDS;
            mram_read((__mram_ptr void const *)(mram_input + first * sizeof(record_t)), cache_in,
                      n * sizeof(record_t));
            l_count = compact(cache_out, cache_in, n, DPU_INPUT_ARGUMENTS.threshold);
        }

        const uint32_t p_count = handshake_sync(l_count, tasklet_id);
        if (l_count != 0)
            mram_write(cache_out, (__mram_ptr void *)(mram_output + p_count * sizeof(record_t)),
                       l_count * sizeof(record_t));

        /* The last of the chain: all others have read it. */
        if (tasklet_id == NR_TASKLETS - 1)
            selected_before_round = p_count + l_count;
        barrier_wait(&my_barrier);
    }

    if (tasklet_id == 0) {
        DPU_RESULTS.selected = selected_before_round;
        DPU_RESULTS.cycles = perfcounter_get();
    }
    return 0;
}
