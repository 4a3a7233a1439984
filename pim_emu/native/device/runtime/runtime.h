/* What the files of the run-time library share. They are compiled like the programs they are linked
 * into, but without checks of the stack and without counting: each function charges what its
 * counterpart on a DPU would execute (costs.h).
 */
#ifndef EMU_RUNTIME_H
#define EMU_RUNTIME_H

#include <attributes.h>
#include <stdbool.h>

#include "../abi.h"
#include "costs.h"

/* Instructions executed by the running tasklet: programs count in this register. */
register uint64_t emu_count __asm__("r15");

extern struct emu_environment __emu_environment;

/* The library's own mutexes do not count towards a program's. */
#undef __atomic_bit
#define __atomic_bit __section(".atomic.library")

/* State that is nobody's WRAM: it holds during a launch. */
#define OUTSIDE_WRAM __attribute__((section(".emu.env")))

/* The place in the program that called the library: faults name its line. */
#define CALLER __builtin_return_address(0)

/* The engine, told what has been executed up to now. */
static inline const struct emu_services *engine_after(uint64_t instructions) {
    emu_count += instructions;
    __emu_environment.instructions = emu_count;
    return __emu_environment.services;
}

/* For the engine to see in traced programs, where the compiler reports only the program's own. */
static inline void report(const void *address, size_t bytes, enum emu_access access,
                          const void *pc) {
    if (__emu_environment.traced && bytes != 0)
        engine_after(0)->access(address, bytes, access, pc);
}

/* Of mem_alloc, for whoever in the library needs memory. Faults where the heap is full. */
void *__emu_heap_take(size_t bytes, size_t alignment, const char *function, const void *pc);
extern uint16_t __emu_heap_resets; /* calls of mem_reset: memory taken before one is gone */

struct vmutex;
void __emu_vmutex_lock(struct vmutex *vm, uint16_t id, const void *pc);
void __emu_vmutex_unlock(struct vmutex *vm, uint16_t id, const void *pc);

/* What a launch begins with. */
void __emu_perfcounter_boot(void);

#endif
