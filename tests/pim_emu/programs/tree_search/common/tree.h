/* The search tree as it lies in the MRAM of every DPU. Nodes refer to each other by index. */
#ifndef TREE_H
#define TREE_H

#include <stdint.h>

#define MAX_NODES (1 << 12)
#define MAX_ENTRIES (1 << 15)
#define MAX_QUERIES (1 << 15) /* of a DPU */
#define LEAF (UINT32_MAX)
#define NOT_FOUND (UINT32_MAX)

typedef struct {
    uint32_t key;   /* inner node: the least key on the right. Leaf: number of entries */
    uint32_t left;  /* LEAF: this is a leaf */
    uint32_t right; /* leaf: index of its first entry */
    uint32_t depth;
} node_t;

typedef struct __attribute__((packed)) {
    uint32_t key;
    uint16_t tag; /* entries have 6 bytes: most begin at no multiple of 8 */
} entry_t;

typedef struct {
    uint32_t root;
    uint32_t nr_queries;
} tree_arguments_t;

#endif
