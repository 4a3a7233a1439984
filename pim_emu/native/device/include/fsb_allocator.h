/* Blocks of one size: a fixed number of them, taken and given back. */
#ifndef DPU_FSB_ALLOCATOR_H
#define DPU_FSB_ALLOCATOR_H

typedef void **fsb_allocator_t;

fsb_allocator_t fsb_alloc(unsigned int block_size, unsigned int nb_of_blocks);
void *fsb_get(fsb_allocator_t allocator); /* NULL: none is free */
void fsb_free(fsb_allocator_t allocator, void *ptr);

#endif
