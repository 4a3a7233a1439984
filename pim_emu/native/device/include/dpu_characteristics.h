/* Numbers of the hardware that programs size their arrays with. */
#ifndef DPU_CHARACTERISTICS_H
#define DPU_CHARACTERISTICS_H

#define DPU_NR_THREADS 24
#define DPU_NR_ATOMIC_BITS 256
#define DPU_NR_WORK_REGS 24

#ifndef NR_THREADS
#define NR_THREADS DPU_NR_THREADS
#endif

#endif
