/* Where variables of a DPU program live, and attributes of functions. */
#ifndef DPU_ATTRIBUTES_H
#define DPU_ATTRIBUTES_H

/* An address in MRAM: another address space, which does not mix with pointers to WRAM. gcc's parser
 * knows the qualifier only where a declaration may begin; after a statement, an attribute tells it. */
#define __mram_ptr __attribute__(()) __seg_gs

#define __section(s) __attribute__((section(s)))
#define __aligned(a) __attribute__((aligned(a)))
#define __used __attribute__((used))
#define __weak __attribute__((weak))
#define __noinline __attribute__((noinline))
#define DEPRECATED __attribute__((deprecated))
#define __NO_RETURN __attribute__((noreturn))

#define __dma_aligned __aligned(8)
#define __atomic_bit __section(".atomic")
#define __keep __used
#define __host __used __aligned(8)      /* in WRAM, found by the host under its name */
#define __lower_data(name) __used       /* the DPU's short immediates have no counterpart here */

/* Variables in MRAM. Those that are not initialised hold what was there before the load. */
#define __mram __mram_ptr __section(".mram") __dma_aligned __used
#define __mram_noinit __mram_ptr __section(".bss.mram.noinit") __dma_aligned __used
#define __mram_keep __mram
#define __mram_noinit_keep __mram_noinit

#endif
