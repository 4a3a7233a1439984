/* The heap of WRAM: from the end of the variables to where the stacks begin. */
#include <alloc.h>

#include "runtime.h"

extern char __emu_wram_end[];        /* of the variables */
OUTSIDE_WRAM char *__emu_heap_limit; /* set by the engine when it loads the program */

/* These live in WRAM: as on a DPU, a launch finds the heap as the one before left it, unless the
 * program resets it. */
static uint32_t used; /* bytes */
uint16_t __emu_heap_resets;

/* The engine sets the limit higher by what the alignment takes. */
static uintptr_t heap_start(void) {
    const uintptr_t below = EMU_HEAP_ALIGNMENT - 1;
    return ((uintptr_t)__emu_wram_end + below) & ~below;
}

void *__emu_heap_take(size_t bytes, size_t alignment, const char *function, const void *pc) {
    const uintptr_t limit = (uintptr_t)__emu_heap_limit;
    const uintptr_t end = heap_start() + used;
    const uintptr_t at = (end + alignment - 1) & ~(uintptr_t)(alignment - 1);
    const size_t free = limit > at ? limit - at : 0;
    if (bytes > free)
        engine_after(COST_MEM_ALLOC)->fault(EMU_FAULT_WRAM_OVERFLOW, pc,
                                            "%s of %zu B, but %zu B of the heap are free", function,
                                            bytes, free);
    used = (uint32_t)(at + bytes - heap_start());
    engine_after(COST_MEM_ALLOC)->heap((void *)(at + bytes));
    return (void *)at;
}

void *mem_alloc(size_t size) { return __emu_heap_take(size, 8, "mem_alloc", CALLER); }

void *mem_reset(void) {
    used = 0;
    ++__emu_heap_resets;
    emu_count += COST_CALL + 4;
    return (void *)heap_start();
}
