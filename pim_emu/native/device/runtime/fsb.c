/* Blocks of one size, in a list of free ones that runs through their first bytes. */
#include <fsb_allocator.h>
#include <mutex.h>

#include "runtime.h"

/* Also orders what two tasklets do with one block. */
MUTEX_INIT(__emu_fsb);

fsb_allocator_t fsb_alloc(unsigned int block_size, unsigned int nb_of_blocks) {
    const size_t size = block_size == 0 ? 8 : ((size_t)block_size + 7) & ~(size_t)7;
    void **const head = __emu_heap_take(8 + size * nb_of_blocks, 8, "fsb_alloc", CALLER);
    void **last = head;
    for (unsigned int i = 0; i < nb_of_blocks; ++i) {
        void **const block = (void **)((char *)head + 8 + size * i);
        *last = block;
        last = block;
    }
    *last = NULL;
    emu_count += COST_FSB_ALLOC(nb_of_blocks);
    return head;
}

void *fsb_get(fsb_allocator_t allocator) {
    engine_after(COST_FSB)->mutex_lock(__emu_fsb, CALLER);
    void **const block = *allocator;
    if (block != NULL) *allocator = *block;
    engine_after(0)->mutex_unlock(__emu_fsb, CALLER);
    return block;
}

void fsb_free(fsb_allocator_t allocator, void *ptr) {
    engine_after(COST_FSB)->mutex_lock(__emu_fsb, CALLER);
    *(void **)ptr = *allocator;
    *allocator = ptr;
    engine_after(0)->mutex_unlock(__emu_fsb, CALLER);
}
