/* Looks keys up: a walk down a tree in MRAM, then a leaf entry by entry. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <seqread.h>
#include <stdio.h>

#include "search.h"

#define ANSWERS 16 /* gathered before they are written */

__mram_noinit node_t nodes[MAX_NODES];
__mram_noinit entry_t entries[MAX_ENTRIES];
__mram_noinit uint32_t queries[MAX_QUERIES];
__mram_noinit uint32_t answers[MAX_QUERIES];

__host tree_arguments_t ARGUMENTS;
__host uint64_t CYCLES;
__host uint32_t FOUND[NR_TASKLETS];

BARRIER_INIT(start, NR_TASKLETS);
BARRIER_INIT(finish, NR_TASKLETS);

__dma_aligned static uint32_t gathered[NR_TASKLETS][ANSWERS];

int main(void) {
    const unsigned int id = me();
    if (id == 0) {
        mem_reset();
        perfcounter_config(COUNT_CYCLES, true);
    }
    barrier_wait(&start);

    /* A slice for each tasklet. It begins where answers may be written: at a multiple of 8 bytes. */
    const uint32_t nr_queries = ARGUMENTS.nr_queries;
    const uint32_t slice = ((nr_queries + NR_TASKLETS - 1) / NR_TASKLETS + 1) & ~1u;
    const uint32_t first = id * slice < nr_queries ? id * slice : nr_queries;
    const uint32_t end = first + slice < nr_queries ? first + slice : nr_queries;

    const seqreader_buffer_t leaf_cache = seqread_alloc();
    seqreader_t reader;
    uint32_t *query = seqread_init(seqread_alloc(), &queries[first], &reader);
    uint32_t found = 0, waiting = 0;
    for (uint32_t i = first; i < end; i++) {
        const uint32_t answer = search(ARGUMENTS.root, *query, leaf_cache);
        found += answer != NOT_FOUND;
        gathered[id][waiting++] = answer;
        if (waiting == ANSWERS || i + 1 == end) {
            mram_write(gathered[id], &answers[i + 1 - waiting],
                       (waiting * sizeof(uint32_t) + 7) & ~7u);
            waiting = 0;
        }
        query = seqread_get(query, sizeof(*query), &reader);
    }
    FOUND[id] = found;

    barrier_wait(&finish);
    if (id == 0) {
        CYCLES = perfcounter_get();
        printf("%u queries by %u tasklets\n", (unsigned int)nr_queries, (unsigned int)NR_TASKLETS);
    }
    return 0;
}
