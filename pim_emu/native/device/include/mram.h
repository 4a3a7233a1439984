/* Transfers between MRAM and WRAM: 8 to 2,048 bytes, a multiple of 8, both addresses too. */
#ifndef DPU_MRAM_H
#define DPU_MRAM_H

#include <attributes.h>
#include <dpu_characteristics.h>
#include <stdint.h>

/* What the program's own MRAM variables leave begins here. */
extern __mram_ptr __dma_aligned uint8_t __sys_used_mram_end[];
#define DPU_MRAM_HEAP_POINTER ((__mram_ptr void *)(&__sys_used_mram_end))

void mram_read(const __mram_ptr void *from, void *to, unsigned int nb_of_bytes);
void mram_write(const void *from, __mram_ptr void *to, unsigned int nb_of_bytes);

#endif
