/* The buddy allocator. An area of units of 16 bytes is cut into blocks of 2^order units, each at a
 * multiple of its size. A byte for each unit tells the order of the block that begins there and
 * whether it is taken; walking from block to block finds everything, so the bytes of units inside a
 * block mean nothing.
 */
#include <buddy_alloc.h>
#include <errno.h>
#include <mutex.h>
#include <string.h>

#include "runtime.h"

#define UNIT 16u
#define TAKEN 0x80u

static uint8_t *area;
static uint8_t *heads;
static uint32_t units;
static uint16_t resets; /* of the heap, when the area was made */

/* Also orders what two tasklets do with one block. */
MUTEX_INIT(__emu_buddy);

static bool ready(void) { return area != NULL && resets == __emu_heap_resets; }

static uint32_t span(uint32_t unit) { return 1u << (heads[unit] & ~TAKEN); }

static void make_one_area(void) {
    for (uint32_t unit = 0; unit < units; unit += span(unit)) {
        uint32_t order = 0;
        while (unit % (2u << order) == 0 && unit + (2u << order) <= units) ++order;
        heads[unit] = (uint8_t)order;
    }
}

void buddy_init(size_t size_of_heap) {
    engine_after(COST_BUDDY_INIT(size_of_heap))->mutex_lock(__emu_buddy, CALLER);
    if (!ready()) {
        const size_t count = (size_of_heap + UNIT - 1) / UNIT;
        area = __emu_heap_take(count * UNIT + count, 8, "buddy_init", CALLER);
        heads = area + count * UNIT;
        units = (uint32_t)count;
        resets = __emu_heap_resets;
        make_one_area();
    }
    engine_after(0)->mutex_unlock(__emu_buddy, CALLER);
}

static void lock(const char *function, const void *pc) {
    if (!ready())
        engine_after(0)->fault(EMU_FAULT_LIBRARY, pc, "%s before buddy_init", function);
    engine_after(COST_BUDDY(0))->mutex_lock(__emu_buddy, pc);
}

static void unlock(const void *pc) { engine_after(0)->mutex_unlock(__emu_buddy, pc); }

void buddy_reset(void) {
    lock("buddy_reset", CALLER);
    make_one_area();
    unlock(CALLER);
}

/* The smallest free block of at least `need` units, cut to size; `units` if there is none. */
static uint32_t take(uint32_t need) {
    uint32_t best = units, visited = 0;
    for (uint32_t unit = 0; unit < units; unit += span(unit), ++visited)
        if (!(heads[unit] & TAKEN) && span(unit) >= need &&
            (best == units || span(unit) < span(best)))
            best = unit;
    emu_count += COST_BUDDY(visited);
    if (best == units) return units;
    while (span(best) / 2 >= need) {
        --heads[best];
        heads[best + span(best)] = heads[best];
    }
    heads[best] |= TAKEN;
    return best;
}

static void give(uint32_t unit) {
    heads[unit] &= (uint8_t)~TAKEN;
    for (;;) {
        const uint32_t buddy = unit ^ span(unit);
        if (buddy >= units || heads[buddy] != heads[unit]) return;
        /* Both are free blocks: a unit inside a block that is not free is never a buddy's place. */
        unit &= ~span(unit);
        ++heads[unit];
    }
}

/* The taken block that holds an address; `units` if there is none. */
static uint32_t find(const void *pointer) {
    const uintptr_t at = (uintptr_t)pointer, start = (uintptr_t)area;
    uint32_t unit = 0, visited = 0;
    if (at % 8 != 0 || at < start || at >= start + (uintptr_t)units * UNIT) return units;
    const uint32_t wanted = (uint32_t)((at - start) / UNIT);
    for (; unit + span(unit) <= wanted; ++visited) unit += span(unit);
    emu_count += COST_BUDDY(visited);
    return heads[unit] & TAKEN ? unit : units;
}

void *buddy_alloc(size_t size) {
    lock("buddy_alloc", CALLER);
    void *block = NULL;
    if (size == 0 || size > (size_t)units * UNIT) {
        errno = EINVAL;
    } else {
        const uint32_t unit = take((uint32_t)((size + UNIT - 1) / UNIT));
        if (unit == units)
            errno = ENOMEM;
        else
            block = area + (size_t)unit * UNIT;
    }
    unlock(CALLER);
    return block;
}

void buddy_free(void *pointer) {
    if (pointer == NULL) return;
    lock("buddy_free", CALLER);
    const uint32_t unit = find(pointer);
    if (unit == units)
        errno = EINVAL;
    else
        give(unit);
    unlock(CALLER);
}

void *buddy_realloc(void *ptr, size_t size) {
    if (ptr == NULL) return buddy_alloc(size);
    if (size == 0) {
        buddy_free(ptr);
        return ptr;
    }
    lock("buddy_realloc", CALLER);
    const uint32_t unit = find(ptr);
    const size_t old = unit == units ? 0 : (size_t)span(unit) * UNIT;
    unlock(CALLER);
    if (old == 0) {
        errno = EINVAL;
        return NULL;
    }
    /* The block is right if it holds the size and half of it would not. */
    if (size <= old && (size > old / 2 || old == UNIT)) return ptr;
    void *const block = buddy_alloc(size);
    if (block == NULL) return NULL;
    memcpy(block, ptr, size < old ? size : old);
    buddy_free(ptr);
    return block;
}
