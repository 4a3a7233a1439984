/* The services that programs call, but for DMA and synchronisation. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* A runaway loop of printf must not take the host's memory; the vendor's buffer is as large. */
#define MOST_LOG (1u << 20)

static bool reserve_log(struct emu_dpu *dpu, size_t bytes) {
    if (bytes <= dpu->log_capacity) return true;
    size_t capacity = dpu->log_capacity ? dpu->log_capacity : 256;
    while (capacity < bytes) capacity *= 2;
    char *grown = realloc(dpu->log, capacity);
    if (grown == NULL) return false;
    dpu->log = grown;
    dpu->log_capacity = capacity;
    return true;
}

static void print(const char *format, va_list arguments, const void *pc) {
    struct emu_run *run = emu_current;
    emu_account(run, pc);
    struct emu_dpu *dpu = run->dpu;
    va_list again;
    va_copy(again, arguments);
    const int bytes = vsnprintf(NULL, 0, format, arguments);
    if (bytes < 0) emu_fail(run, EMU_FAULT_LIBRARY, pc, "printf cannot format \"%s\"", format);
    const size_t end = dpu->log_bytes + (size_t)bytes;
    if (end > MOST_LOG || !reserve_log(dpu, end + 1)) {
        dpu->log_truncated = true;
    } else {
        vsnprintf(dpu->log + dpu->log_bytes, (size_t)bytes + 1, format, again);
        dpu->log_bytes = end;
    }
    va_end(again);
}

/* Called from a function's prologue too, where the stack is not aligned for a call. */
__attribute__((force_align_arg_pointer)) static _Noreturn void fault(
    enum emu_fault_kind kind, const void *pc, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    emu_vfail(emu_current, kind, pc, format, arguments);
}

static _Noreturn void halt(void) {
    struct emu_run *run = emu_current;
    emu_account(run, run->tasklets[run->current].pc);
    emu_end_tasklet(run);
}

static uint64_t cycles(void) {
    struct emu_run *run = emu_current;
    emu_account(run, run->tasklets[run->current].pc);
    return (uint64_t)run->time;
}

static uint64_t launch_instructions(void) {
    struct emu_run *run = emu_current;
    emu_account(run, run->tasklets[run->current].pc);
    return run->counters.instructions;
}

static void yield(const void *pc) {
    emu_account(emu_current, pc);
}

/* Where a null pointer goes, the instruction itself knows whether it means WRAM or MRAM. Otherwise
 * the address tells: programs lie above MRAM. */
static void fail_bounds(struct emu_run *run, const void *address, size_t bytes,
                        enum emu_access access, const void *pc) {
    const uintptr_t at = (uintptr_t)address, never_mapped = 1u << 16;
    if (at + bytes <= never_mapped) return;
    emu_fail(run, at < EMU_PROGRAM_BASE ? EMU_FAULT_MRAM_BOUNDS : EMU_FAULT_WRAM_BOUNDS, pc,
             "%s of %zu B at 0x%08zx", access == EMU_READ ? "read" : "write", bytes, (size_t)at);
}

static void access_memory(const void *address, size_t bytes, enum emu_access access,
                          const void *pc) {
    struct emu_run *run = emu_current;
    if (run->races == NULL) return; /* before the tasklets start */
    emu_account(run, pc);
    /* Pointers to MRAM come as they are, without the window. */
    const uintptr_t offset = (uintptr_t)address - EMU_MRAM_BASE;
    if (offset < run->machine->mram_bytes && bytes <= run->machine->mram_bytes - offset) {
        emu_race_mram(run, (uint32_t)offset, bytes, access, pc);
        return;
    }
    if (!emu_in_wram(run, address, bytes)) fail_bounds(run, address, bytes, access, pc);
    emu_race_wram(run, address, bytes, access, pc);
}

static uint32_t stack_free(void) {
    const struct emu_run *run = emu_current;
    const uint8_t *here = __builtin_frame_address(0);
    const uint8_t *limit = run->tasklets[run->current].stack_limit;
    return here > limit ? (uint32_t)(here - limit) : 0;
}

static void heap(const void *end) {
    struct emu_run *run = emu_current;
    if ((const uint8_t *)end <= run->heap_end) return;
    run->heap_end = end;
    emu_open_wram(run->image, run->machine, (uint32_t)(run->heap_end - run->image->wram));
}

/* These are no points at which tasklets change, but a fault in one has a place in the program, and
 * loops of them alone leave the C library nowhere but here. */
static void begin_copy(const void *pc) {
    emu_current->tasklets[emu_current->current].pc = pc;
}

static void end_copy(const void *pc) {
    if (emu_is_overdue(emu_current)) emu_fail_timeout(emu_current, pc);
}

static void *copy(void *to, const void *from, size_t bytes, const void *pc) {
    begin_copy(pc);
    memcpy(to, from, bytes);
    end_copy(pc);
    return to;
}

static void *move(void *to, const void *from, size_t bytes, const void *pc) {
    begin_copy(pc);
    memmove(to, from, bytes);
    end_copy(pc);
    return to;
}

static void *fill(void *to, int value, size_t bytes, const void *pc) {
    begin_copy(pc);
    memset(to, value, bytes);
    end_copy(pc);
    return to;
}

static int compare(const void *a, const void *b, size_t bytes, const void *pc) {
    begin_copy(pc);
    const int order = memcmp(a, b, bytes);
    end_copy(pc);
    return order;
}

const struct emu_services emu_all_services = {
    .dma = emu_dma,
    .barrier_wait = emu_barrier_wait,
    .mutex_lock = emu_mutex_lock,
    .mutex_trylock = emu_mutex_trylock,
    .mutex_unlock = emu_mutex_unlock,
    .semaphore_take = emu_semaphore_take,
    .semaphore_give = emu_semaphore_give,
    .handshake_wait = emu_handshake_wait,
    .handshake_notify = emu_handshake_notify,
    .fault = fault,
    .halt = halt,
    .print = print,
    .cycles = cycles,
    .yield = yield,
    .access = access_memory,
    .stack_free = stack_free,
    .heap = heap,
    .copy = copy,
    .move = move,
    .fill = fill,
    .compare = compare,
    .launch_instructions = launch_instructions,
};
