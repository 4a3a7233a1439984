/* What the engine finds in a program: its environment, how a launch begins and a tasklet runs. */
#include "runtime.h"

OUTSIDE_WRAM struct emu_environment __emu_environment;

/* me() reads the number of the tasklet under a name of its own. */
_Static_assert(offsetof(struct emu_environment, tasklet) == 16, "see the symbol below");
__asm__(".globl __emu_tasklet\n"
        ".set __emu_tasklet, __emu_environment + 16\n");

int main(void);

/* Where the kernel begins if somebody runs the program by itself. */
__NO_RETURN void __emu_start(void) {
    static OUTSIDE_WRAM char text[] =
        "This is a program for DPUs: a host program loads it, by dpu_load or pim_emu.run.\n";
    const long write = 1, exit = 60, error_output = 2;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(write), "D"(error_output), "S"(text),
                     "d"(sizeof text - 1) : "rcx", "r11", "memory");
    __asm__ volatile("syscall" : "=a"(result) : "a"(exit), "D"(1) : "rcx", "r11", "memory");
    __builtin_unreachable();
}

/* Once for each launch, before its tasklets. */
void __emu_boot(void) { __emu_perfcounter_boot(); }

/* Once for each tasklet, on its own stack. */
__NO_RETURN void __emu_entry(void) {
    main();
    engine_after(COST_CALL)->halt();
}
