/* Tasklets pass few blocks around: each must be one tasklet's at a time. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <perfcounter.h>
#include <profiling.h>
#include <stdint.h>

BARRIER_INIT(ready, NR_TASKLETS);
PROFILING_INIT(holding);
__host uint32_t damaged, done[NR_TASKLETS];
static fsb_allocator_t blocks;

static void use(uint32_t *block) {
    block[0] = block[3] = me();
    perfcounter_get();
    if (block[0] != me() || block[3] != me()) __atomic_fetch_add(&damaged, 1, __ATOMIC_RELAXED);
}

int main(void) {
    if (me() == 0) {
        mem_reset();
        buddy_init(32);
        blocks = fsb_alloc(16, 2);
    }
    barrier_wait(&ready);
    while (done[me()] < 20) {
        profiling_start(&holding);
        uint32_t *const block = fsb_get(blocks);
        if (block != NULL) {
            use(block);
            fsb_free(blocks, block);
            ++done[me()];
        }
        uint32_t *const other = buddy_alloc(16);
        if (other != NULL) use(other);
        buddy_free(other);
        profiling_stop(&holding);
    }
    return 0;
}
