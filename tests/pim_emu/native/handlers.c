/* handlers PROGRAM HOW: a host program that had SIGSEGV before the emulator took it, launches a DPU
 * program twice, and then reads a place where nothing is. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dpu.h>

static sigjmp_buf back;
static struct sigaction previous;

static void jump(int number) {
    (void)number;
    siglongjmp(back, 1);
}

static bool readable(const volatile char *place) {
    if (sigsetjmp(back, 1)) return false;
    (void)*place;
    return true;
}

static void return_once(int number) {
    static int calls;
    (void)number;
    if (++calls > 1) _exit(9);
}

static void report(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    _exit(7);
}

static void ask_previous(int number, siginfo_t *info, void *context) {
    previous.sa_sigaction(number, info, context);
}

int main(int nr_arguments, char **arguments) {
    if (nr_arguments != 3) return 2;
    const char *how = arguments[2];
    const char *nowhere = (const char *)8;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    if (strcmp(how, "jumps") == 0) action.sa_handler = jump;
    if (strcmp(how, "ignores") == 0) action.sa_handler = SIG_IGN;
    if (strcmp(how, "once") == 0) {
        action.sa_handler = return_once;
        action.sa_flags = SA_RESETHAND;
    }
    if (strcmp(how, "chain") == 0) {
        action.sa_sigaction = report;
        action.sa_flags = SA_SIGINFO;
    }
    sigaction(SIGSEGV, &action, NULL);
    struct dpu_set_t set;
    DPU_ASSERT(dpu_alloc(1, NULL, &set));
    DPU_ASSERT(dpu_load(set, arguments[1], NULL));
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    if (strcmp(how, "chain") == 0) {
        action.sa_sigaction = ask_previous;
        sigaction(SIGSEGV, &action, &previous);
    }
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    if (strcmp(how, "jumps") == 0)
        for (int i = 0; i < 3; ++i)
            if (readable(nowhere)) return 3;
    if (strcmp(how, "jumps") != 0) (void)*(const volatile char *)nowhere;
    DPU_ASSERT(dpu_free(set));
    return 0;
}
