/* Faults: a DPU stops with a message that names the fault, the DPU, the tasklet and the line. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static const char *const names[] = {
    [EMU_FAULT_NONE] = "no fault",
    [EMU_FAULT_DMA_ALIGNMENT] = "misaligned DMA",
    [EMU_FAULT_DMA_SIZE] = "bad DMA size",
    [EMU_FAULT_DMA_WRAM] = "DMA outside WRAM",
    [EMU_FAULT_MRAM_BOUNDS] = "MRAM out of bounds",
    [EMU_FAULT_WRAM_BOUNDS] = "WRAM out of bounds",
    [EMU_FAULT_WRAM_OVERFLOW] = "WRAM overflow",
    [EMU_FAULT_STACK_OVERFLOW] = "stack overflow",
    [EMU_FAULT_BARRIER] = "barrier misuse",
    [EMU_FAULT_MUTEX] = "mutex misuse",
    [EMU_FAULT_SEMAPHORE] = "semaphore overflow",
    [EMU_FAULT_HANDSHAKE] = "handshake misuse",
    [EMU_FAULT_DEADLOCK] = "deadlock",
    [EMU_FAULT_RACE] = "race",
    [EMU_FAULT_DIVISION] = "division error",
    [EMU_FAULT_TIMEOUT] = "no progress",
    [EMU_FAULT_LIBRARY] = "library misuse",
    [EMU_FAULT_PROGRAM] = "stopped by the program",
};

const char *emu_fault_name(enum emu_fault_kind kind) {
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown fault";
}

/* Append to the message, which is cut where it is full. */
static void append(struct emu_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void append(struct emu_run *run, const char *format, ...) {
    const size_t used = strlen(run->message);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run->message + used, sizeof run->message - used, format, arguments);
    va_end(arguments);
}

_Noreturn void emu_vfail(struct emu_run *run, enum emu_fault_kind kind, const void *pc,
                         const char *format, va_list arguments) {
    emu_settle(run);
    run->fault = kind;
    run->message[0] = '\0';
    append(run, "%s: DPU %u, tasklet %u, %s: ", emu_fault_name(kind), run->dpu->index, run->current,
           emu_place(run, pc));
    const size_t used = strlen(run->message);
    vsnprintf(run->message + used, sizeof run->message - used, format, arguments);
    emu_leave_run(run);
}

_Noreturn void emu_fail(struct emu_run *run, enum emu_fault_kind kind, const void *pc,
                        const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    emu_vfail(run, kind, pc, format, arguments);
}

_Noreturn void emu_fail_timeout(struct emu_run *run, const void *pc) {
    emu_fail(run, EMU_FAULT_TIMEOUT, pc,
             "%g s without a call: does it wait for memory that another tasklet writes? A traced "
             "build lets others run (PIM_EMU_TIMEOUT sets the limit)",
             run->settings.timeout_seconds);
}

const char *emu_name_object(struct emu_run *run, const void *object, char *text) {
    const uint32_t address = (uint32_t)((uintptr_t)object - (uintptr_t)run->image->delta);
    const char *name = emu_symbol_at(run->program, address);
    const char prefix[] = "__atomic_bit_mutex_"; /* of what MUTEX_INIT makes of a name */
    if (name != NULL && strncmp(name, prefix, sizeof prefix - 1) == 0) name += sizeof prefix - 1;
    if (name != NULL)
        snprintf(text, 64, "'%s'", name);
    else
        snprintf(text, 64, "%p", object);
    return text;
}

static void append_reason(struct emu_run *run, const struct emu_tasklet *tasklet) {
    char name[64];
    const struct emu_barrier *barrier = tasklet->object;
    const uint8_t *mutex = tasklet->object;
    switch (tasklet->waiting) {
    case EMU_ON_BARRIER:
        append(run, "at barrier %s, to which %u of %u have come",
               emu_name_object(run, barrier, name), barrier->waiting, barrier->size);
        break;
    case EMU_ON_MUTEX:
        append(run, "for mutex %s, held by tasklet %u", emu_name_object(run, mutex, name),
               run->owner[mutex - run->image->atomic]);
        break;
    case EMU_ON_SEMAPHORE:
        append(run, "for semaphore %s", emu_name_object(run, tasklet->object, name));
        break;
    case EMU_ON_NOTIFIER:
        append(run, "to be notified by tasklet %td",
               (const struct emu_tasklet *)tasklet->object - run->tasklets);
        break;
    case EMU_ON_WAITER:
        append(run, "for somebody to take its notification");
        break;
    case EMU_NOTHING:
        break;
    }
}

_Noreturn void emu_fail_deadlock(struct emu_run *run) {
    run->fault = EMU_FAULT_DEADLOCK;
    run->message[0] = '\0';
    append(run, "%s: DPU %u", emu_fault_name(EMU_FAULT_DEADLOCK), run->dpu->index);
    for (uint32_t i = 0; i < run->count; ++i) {
        const struct emu_tasklet *tasklet = &run->tasklets[i];
        if (tasklet->ended) continue;
        append(run, "; tasklet %u, %s, waits ", i, emu_place(run, tasklet->pc));
        append_reason(run, tasklet);
    }
    emu_leave_run(run);
}
