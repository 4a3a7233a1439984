/* Signals that a program's own instructions raise become faults of its DPU. A tasklet that is stopped
 * never goes on, so its stack is used afresh: the signal handler returns into a function that reports
 * the fault as any service does. Signals that are not a program's go where they went before. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "fiber.h"
#include "internal.h"

static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, EMU_WATCHDOG_SIGNAL};
/* Who had a signal before this took it first, and before this took it last. */
static struct sigaction first[NSIG], before[NSIG];
static bool taken;
/* The frame of the handler that asks those before it, if it has not been left by a jump. */
static __thread const char *forwarding __attribute__((tls_model("initial-exec")));
static __thread struct raised {
    int signal;
    bool no_address; /* not canonical */
    uintptr_t address;
    const void *pc;
} raised __attribute__((tls_model("initial-exec"))); /* no allocation in a handler */

static bool in_program(const struct emu_run *run, const void *pc) {
    return (const uint8_t *)pc >= run->image->text && (const uint8_t *)pc < run->image->library;
}

/* The place in the program: where it stands, or the call that led to a library or to nowhere. The
 * run-time library keeps frame pointers, and small functions of the C library leave them alone. */
static const void *where(const struct emu_run *run, const greg_t *registers) {
    const void *pc = (const void *)registers[REG_RIP];
    if (in_program(run, pc)) return (const uint8_t *)pc + 1;
    const struct emu_tasklet *tasklet = &run->tasklets[run->current];
    const uintptr_t low = (uintptr_t)tasklet->stack_bottom;
    const uintptr_t high = (uintptr_t)tasklet->stack_top - 2 * sizeof(void *);
    uintptr_t stack = (uintptr_t)registers[REG_RSP], frame = (uintptr_t)registers[REG_RBP];
    if (stack >= low && stack <= high && in_program(run, *(const void **)stack))
        return *(const void **)stack; /* a function that has not begun, or is none */
    for (int depth = 0; depth < 8 && frame >= stack && frame <= high && frame % 8 == 0; ++depth) {
        const uintptr_t *saved = (const uintptr_t *)frame; /* the frame before, the return address */
        if (in_program(run, (const void *)saved[1])) return (const void *)saved[1];
        stack = frame + 1;
        frame = saved[0];
    }
    return tasklet->pc; /* of the service */
}

/* An index like `i - 1u` of 32 bits wraps on a DPU, whose pointers have as many. */
#define HINT " (an unsigned index of 32 bits that wrapped? Pointers have 64 bits here)"

static const char *hint(const struct emu_run *run) {
    const uintptr_t wrapped = (uint32_t)raised.address;
    const bool meant = wrapped != raised.address && emu_in_wram(run, (const void *)wrapped, 1);
    return meant ? HINT : "";
}

static _Noreturn void report(void) {
    struct emu_run *run = emu_current;
    const uintptr_t window = (uintptr_t)run->dpu->window;
    switch (raised.signal) {
    case SIGFPE:
        emu_fail(run, EMU_FAULT_DIVISION, raised.pc, "by zero, or the quotient overflows");
    case SIGILL: /* compilers put a trap where behaviour is undefined */
        emu_fail(run, EMU_FAULT_PROGRAM, raised.pc, "a trap, or undefined behaviour in C");
    case EMU_WATCHDOG_SIGNAL:
        emu_fail_timeout(run, raised.pc);
    default:
        if (raised.address - window < 64 * EMU_WINDOW_STEP) /* elements of up to so many bytes */
            emu_fail(run, EMU_FAULT_MRAM_BOUNDS, raised.pc, "access to MRAM address 0x%08llx%s",
                     (unsigned long long)(raised.address - window),
                     raised.address - window < EMU_WINDOW ? "" : HINT);
        if (raised.no_address)
            emu_fail(run, EMU_FAULT_WRAM_BOUNDS, raised.pc,
                     "a pointer that holds no address (from memory that nobody has written?)");
        emu_fail(run, EMU_FAULT_WRAM_BOUNDS, raised.pc, "access to address 0x%zx%s",
                 (size_t)raised.address, hint(run));
    }
}

/* Memory that was closed only to see whether it is used. */
static bool open_wram(const struct emu_run *run, uintptr_t address) {
    const uintptr_t offset = address - (uintptr_t)run->image->wram;
    return offset < run->machine->wram_bytes &&
           emu_open_wram(run->image, run->machine, (uint32_t)offset + 1);
}

/* Whether a tasklet's instruction raised it; then the handler returns into `report`. */
static bool take(int number, const siginfo_t *info, ucontext_t *context) {
    struct emu_run *run = emu_current;
    if (run == NULL) return false;
    greg_t *registers = context->uc_mcontext.gregs;
    const uint8_t *pc = (const uint8_t *)registers[REG_RIP];
    if (number == EMU_WATCHDOG_SIGNAL) {
        if (!emu_is_overdue(run)) return false;
        /* Elsewhere it makes a call after all, or copies, and then it will look. */
        if (pc < run->image->text || pc >= run->image->text_end) return true;
    }
    raised.signal = number;
    raised.address = (uintptr_t)info->si_addr;
    raised.no_address = number == SIGSEGV && info->si_code == SI_KERNEL;
    if (number == SIGSEGV && open_wram(run, raised.address)) return true;
    raised.pc = where(run, registers);
    if (in_program(run, pc) && run->program->info.build & EMU_COUNTED)
        run->image->environment->instructions = (uint64_t)registers[REG_R15];
    emu_fiber_renew(&run->tasklets[run->current]);
    const uintptr_t top = (uintptr_t)run->tasklets[run->current].stack_top;
    registers[REG_RSP] = (greg_t)(top - 8); /* as after a call */
    registers[REG_RIP] = (greg_t)(uintptr_t)report;
    return true;
}

/* The default ends the process: the instruction raises the signal again, or this does. */
static void leave_to_default(int number, const siginfo_t *info) {
    signal(number, SIG_DFL);
    if (info->si_code <= 0) raise(number); /* it was sent by a process */
}

/* To a handler as it was set, here or in `first` or `before`. */
static void forward(int number, siginfo_t *info, void *context, struct sigaction *to) {
    const struct sigaction old = *to;
    const bool ignored = old.sa_handler == SIG_IGN, set = !ignored && old.sa_handler != SIG_DFL;
    if (set && old.sa_flags & SA_RESETHAND) to->sa_handler = SIG_DFL;
    if (set && old.sa_flags & SA_SIGINFO)
        old.sa_sigaction(number, info, context);
    else if (set)
        old.sa_handler(number);
    else if (number != EMU_WATCHDOG_SIGNAL && !(ignored && info->si_code <= 0))
        leave_to_default(number, info);
}

static void handle(int number, siginfo_t *info, void *context) {
    if (take(number, info, context)) return;
    const char *frame = __builtin_frame_address(0), *outer = forwarding;
    const bool nested = outer != NULL && frame < outer;
    forwarding = nested ? outer : frame;
    /* A handler that knows this one, as what was before it, calls it in turn. */
    forward(number, info, context, nested ? &first[number] : &before[number]);
    forwarding = nested ? outer : NULL;
}

bool emu_take_signals(void) {
    struct sigaction action, now;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handle;
    /* Nothing stays blocked: the handler does not return to where it came from. */
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
        if (sigaction(numbers[i], NULL, &now) != 0) return false;
        if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == handle) continue;
        before[numbers[i]] = now;
        if (!taken) first[numbers[i]] = now;
        if (sigaction(numbers[i], &action, NULL) != 0) return false;
    }
    taken = true;
    return true;
}

void emu_unblock_signals(sigset_t *old) {
    sigset_t ours;
    sigemptyset(&ours);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) sigaddset(&ours, numbers[i]);
    pthread_sigmask(SIG_UNBLOCK, &ours, old);
}
