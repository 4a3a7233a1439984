/* Signals that a program's own instructions raise become faults of its DPU. A tasklet that is stopped
 * never goes on, so its stack is used afresh: the signal handler returns into a function that reports
 * the fault as any service does. Signals that are not a program's go where they went before. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "fiber.h"
#include "internal.h"

static struct sigaction before[NSIG];
static __thread struct {
    int signal;
    uintptr_t address;
    const void *pc;
} raised;

static const void *where(struct emu_run *run) {
    const uint8_t *pc = raised.pc;
    /* In a library function, the line that called it says more. */
    if (pc >= run->image->text && pc < run->image->text_end) return pc + 1;
    return run->tasklets[run->current].pc;
}

/* An index like `i - 1u` of 32 bits wraps on a DPU, whose pointers have as many. */
static const char *hint(const struct emu_run *run) {
    const uintptr_t wrapped = (uint32_t)raised.address;
    if (wrapped == raised.address || !emu_in_wram(run, (const void *)wrapped, 1)) return "";
    return " (an unsigned index of 32 bits that wrapped? Pointers have 64 bits here)";
}

static _Noreturn void report(void) {
    struct emu_run *run = emu_current;
    const uintptr_t window = (uintptr_t)run->dpu->window;
    switch (raised.signal) {
    case SIGFPE:
        emu_fail(run, EMU_FAULT_DIVISION, where(run), "by zero, or the quotient overflows");
    case SIGILL: /* compilers put a trap where behaviour is undefined */
        emu_fail(run, EMU_FAULT_PROGRAM, where(run), "a trap, or undefined behaviour in C");
    case EMU_WATCHDOG_SIGNAL:
        emu_fail(run, EMU_FAULT_TIMEOUT, where(run),
                 "%g s without a call: does it wait for memory that another tasklet writes? A traced "
                 "build lets others run (PIM_EMU_TIMEOUT sets the limit)",
                 run->settings.timeout_seconds);
    default:
        if (raised.address - window < EMU_WINDOW)
            emu_fail(run, EMU_FAULT_MRAM_BOUNDS, where(run), "access to MRAM address 0x%08x",
                     (uint32_t)(raised.address - window));
        emu_fail(run, EMU_FAULT_WRAM_BOUNDS, where(run), "access to address %p%s",
                 (void *)raised.address, hint(run));
    }
}

/* Whether a tasklet's instruction raised it; then the handler returns into `report`. */
static bool take(int number, const siginfo_t *info, ucontext_t *context) {
    struct emu_run *run = emu_current;
    if (run == NULL) return false;
    greg_t *registers = context->uc_mcontext.gregs;
    const uint8_t *pc = (const uint8_t *)registers[REG_RIP];
    if (number == EMU_WATCHDOG_SIGNAL && (pc < run->image->text || pc >= run->image->text_end))
        return false; /* it makes a call after all */
    raised.signal = number;
    raised.address = (uintptr_t)info->si_addr;
    raised.pc = pc;
    emu_fiber_renew(&run->tasklets[run->current]);
    const uintptr_t top = (uintptr_t)run->tasklets[run->current].stack_top;
    registers[REG_RSP] = (greg_t)(top - 8); /* as after a call */
    registers[REG_RIP] = (greg_t)(uintptr_t)report;
    return true;
}

static void handle(int number, siginfo_t *info, void *context) {
    if (take(number, info, context)) return;
    const struct sigaction *old = &before[number];
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(number, info, context);
    } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(number);
    } else if (old->sa_handler == SIG_DFL && number != EMU_WATCHDOG_SIGNAL) {
        sigaction(number, old, NULL); /* the instruction raises it again */
    }
}

bool emu_install_signals(void) {
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, EMU_WATCHDOG_SIGNAL};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handle;
    /* Nothing stays blocked: the handler does not return to where it came from. */
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        if (sigaction(numbers[i], &action, &before[numbers[i]]) != 0) return false;
    return true;
}
