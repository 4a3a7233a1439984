/* Sizes of the hardware's memories, as powers of two. */
#ifndef DPU_DPUCONST_H
#define DPU_DPUCONST_H

#include <dpu_characteristics.h>

#define __DPU_MRAM_SIZE_LOG2 26
#define __DPU_WRAM_SIZE_LOG2 16

#endif
