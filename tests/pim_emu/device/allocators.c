/* Carries out a script of allocations and says where each block lies. */
#include <alloc.h>
#include <defs.h>
#include <errno.h>
#include <stdint.h>

enum { BUDDY_ALLOC, BUDDY_FREE, BUDDY_REALLOC, FSB_GET, FSB_FREE, BUDDY_RESET, MEM_ALLOC };
struct step {
    uint32_t what, slot, bytes, unused;
};

#define SLOTS 65
__host struct step script[600];
__host uint32_t steps, heap_bytes, block_bytes, blocks;
__host int32_t places[600]; /* from the first block of its kind; -1: none */
__host uint32_t damaged;    /* bytes that did not keep their value */
__host int32_t errors[600];

static uint8_t *pointers[SLOTS];
static uint32_t sizes[SLOTS];

static uint8_t mark(uint32_t slot, uint32_t at) { return (uint8_t)(slot * 37 + at); }

static void check(uint32_t slot, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; ++i) damaged += pointers[slot][i] != mark(slot, i);
}

static void hold(uint32_t slot, uint8_t *pointer, uint32_t bytes) {
    pointers[slot] = pointer;
    sizes[slot] = pointer != NULL ? bytes : 0;
    for (uint32_t i = 0; i < sizes[slot]; ++i) pointer[i] = mark(slot, i);
}

int main(void) {
    mem_reset();
    buddy_init(heap_bytes);
    uint8_t *const area = buddy_alloc(1u << (31 - __builtin_clz(heap_bytes))); /* its start */
    buddy_free(area);
    const fsb_allocator_t allocator = fsb_alloc(block_bytes, blocks);
    uint8_t *const first = fsb_get(allocator);
    fsb_free(allocator, first);
    uint8_t *const heap = mem_alloc(0);
    for (uint32_t i = 0; i < steps; ++i) {
        const uint32_t slot = script[i].slot, bytes = script[i].bytes;
        uint8_t *got = NULL, *base = area;
        errno = 0;
        switch (script[i].what) {
        case BUDDY_ALLOC:
            hold(slot, got = buddy_alloc(bytes), bytes);
            break;
        case BUDDY_REALLOC:
            got = buddy_realloc(pointers[slot], bytes);
            if (got != NULL) {
                pointers[slot] = got;
                check(slot, bytes < sizes[slot] ? bytes : sizes[slot]);
                hold(slot, got, bytes);
            }
            break;
        case BUDDY_FREE:
            check(slot, sizes[slot]);
            buddy_free(pointers[slot] + bytes); /* from inside the block too */
            break;
        case BUDDY_RESET:
            buddy_reset();
            break;
        case FSB_GET:
            base = first;
            hold(slot, got = fsb_get(allocator), block_bytes);
            break;
        case FSB_FREE:
            check(slot, sizes[slot]);
            if (pointers[slot] != NULL) fsb_free(allocator, pointers[slot]);
            break;
        case MEM_ALLOC:
            base = heap;
            got = mem_alloc(bytes);
            break;
        }
        errors[i] = errno;
        places[i] = got != NULL ? (int32_t)(got - base) : -1;
    }
    return 0;
}
