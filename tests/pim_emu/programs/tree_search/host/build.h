#ifndef BUILD_H
#define BUILD_H

#include "tree.h"

typedef struct {
    uint32_t nr_nodes, nr_entries, root;
    node_t nodes[MAX_NODES];
    entry_t entries[MAX_ENTRIES];
} tree_t;

/* A tree of so many entries with random keys, in leaves of different sizes. */
tree_t *build_tree(uint32_t nr_entries);

#endif
