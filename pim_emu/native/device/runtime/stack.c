/* Functions of a program whose frame does not fit the tasklet's stack come here from their first
 * instructions, in the way of gcc's split stacks: the frame's size in r10, the place to return to
 * on the stack. The host's stack reaches further than the declared one: there is room to report.
 */
#include <defs.h>

#include "runtime.h"

__asm__(".text\n"
        ".globl __morestack\n"
        ".type __morestack, @function\n"
        "__morestack:\n"
        "    movq (%rsp), %rdi\n"
        "    movq %r10, %rsi\n"
        "    call __emu_stack_overflow\n"
        ".size __morestack, . - __morestack\n");

__NO_RETURN __used void __emu_stack_overflow(const void *pc, uint64_t bytes) {
    const uint32_t tasklet = __emu_environment.tasklet;
    engine_after(0)->fault(EMU_FAULT_STACK_OVERFLOW, pc,
                           "a frame of %llu B does not fit (declared by STACK_SIZE_TASKLET_%u or "
                           "STACK_SIZE_DEFAULT)",
                           (unsigned long long)bytes, tasklet);
}

/* For arrays of variable size. */
__NO_RETURN void *__morestack_allocate_stack_space(size_t bytes) {
    __emu_stack_overflow(CALLER, bytes);
}

int check_stack(void) { return (int)(engine_after(COST_CALL + 4)->stack_free() / 4); }
