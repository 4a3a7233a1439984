/* What the driver knows when it links a program. Compiled for each link; `build` is filled in
 * afterwards, from the objects that the linker took. */
#include "../abi.h"

#ifndef EMU_NR_TASKLETS
#error "EMU_NR_TASKLETS and EMU_STACK_BYTES are given by the compiler driver"
#endif

const struct emu_info __emu_info __attribute__((section(".emu.info"), used)) = {
    .magic = EMU_MAGIC,
    .abi = EMU_ABI,
    .nr_tasklets = EMU_NR_TASKLETS,
    .stack_bytes = {EMU_STACK_BYTES},
};
