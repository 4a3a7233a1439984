// What the host writes and the tasklets share.

#ifndef ACCEL_RL_UPMEM_STATE_H
#define ACCEL_RL_UPMEM_STATE_H

#include <attributes.h>
#include <mram.h>

#include "program.h"

__host arl_parameters parameters;
__host arl_chunk chunk;
__host arl_entry codebook[ARL_CODEBOOK];
__host uint64_t counted;
__mram_noinit arl_entry tables[(ENTRIES + 1) / 2 * 2];
_Static_assert(SIZE <= 65536, "entries of a list are of 16 bits");
__mram_noinit uint16_t visited[(SIZE + 3) / 4 * 4];

static __dma_aligned arl_entry q[(ENTRIES + 1) / 2 * 2];  // the tables while they are trained

// The rows of the chunk, each of 1 << row_shift() bytes.
#define records ((const __mram_ptr uint8_t *)DPU_MRAM_HEAP_POINTER)

ARL_INLINE uint32_t row_shift(void) {
  _Static_assert(sizeof(arl_record) == 1 << 3 && sizeof(arl_wide_row) == 1 << 4, "powers of two");
  return parameters.wide ? 4 : 3;
}

#endif
