/* Blocks of 16 bytes or a larger power of two, from one area of the heap.
 *
 * Failures set errno: EINVAL for a size or a pointer that cannot be, ENOMEM where nothing is left.
 */
#ifndef DPU_BUDDY_ALLOC_H
#define DPU_BUDDY_ALLOC_H

#include <stddef.h>

void buddy_init(size_t size_of_heap); /* calls after the first do nothing, until mem_reset */
void buddy_reset(void);               /* free all blocks */
void *buddy_alloc(size_t size);       /* NULL: no such block */
void buddy_free(void *pointer);       /* to anywhere in the block */
void *buddy_realloc(void *ptr, size_t size);

#endif
