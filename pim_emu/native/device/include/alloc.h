/* The heap: WRAM between the program's variables and the stacks. */
#ifndef DPU_ALLOC_H
#define DPU_ALLOC_H

#include <attributes.h>
#include <buddy_alloc.h>
#include <fsb_allocator.h>
#include <stddef.h>

/* A buffer aligned to 8 bytes. It is never given back, and a full heap is a fault. */
void *mem_alloc(size_t size);

/* Forget all buffers; returns the start of the heap. */
void *mem_reset(void);

#endif
