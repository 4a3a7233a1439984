/* Coroutines: a tasklet's registers lie on its stack while others run. */
    .text
    .globl emu_switch
    .type emu_switch, @function
/* void emu_switch(void **save, void *to) */
emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emu_switch, .-emu_switch

    .globl emu_tasklet_start
    .type emu_tasklet_start, @function
/* Where a new tasklet begins: rbx holds what to call, which does not return. */
emu_tasklet_start:
    xorl %ebp, %ebp
    call *%rbx
    ud2
    .size emu_tasklet_start, .-emu_tasklet_start

    .globl emu_call_program
    .type emu_call_program, @function
/* void emu_call_program(void (*function)(void)) */
emu_call_program:
    pushq %r15
    xorl %r15d, %r15d
    call *%rdi
    popq %r15
    ret
    .size emu_call_program, .-emu_call_program
    .section .note.GNU-stack, "", @progbits
