#ifndef SEARCH_H
#define SEARCH_H

#include <mram.h>
#include <seqread.h>

#include "tree.h"

extern __mram_noinit node_t nodes[MAX_NODES];
extern __mram_noinit entry_t entries[MAX_ENTRIES];

/* The tag of a key, or NOT_FOUND. `cache` is for the entries of a leaf. */
uint32_t search(uint32_t root, uint32_t key, seqreader_buffer_t cache);

#endif
