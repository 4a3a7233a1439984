#include "build.h"

#include <assert.h>
#include <stdlib.h>

static uint32_t build(tree_t *tree, uint32_t first, uint32_t end, uint32_t depth) {
    assert(tree->nr_nodes < MAX_NODES);
    const uint32_t index = tree->nr_nodes++;
    node_t *node = &tree->nodes[index];
    node->depth = depth;
    if (end - first <= 24) {
        *node = (node_t){.key = end - first, .left = LEAF, .right = first, .depth = depth};
        return index;
    }
    /* Not in the middle: paths and leaves shall differ. */
    const uint32_t split = first + 1 + (uint32_t)rand() % (end - first - 1);
    node->key = tree->entries[split].key;
    node->left = build(tree, first, split, depth + 1);
    node->right = build(tree, split, end, depth + 1);
    return index;
}

tree_t *build_tree(uint32_t nr_entries) {
    tree_t *tree = calloc(1, sizeof(*tree));
    tree->nr_entries = nr_entries;
    uint32_t key = 0;
    for (uint32_t i = 0; i < nr_entries; i++) {
        key += 1 + (uint32_t)rand() % 9;
        tree->entries[i] = (entry_t){.key = key, .tag = (uint16_t)rand()};
    }
    tree->root = build(tree, 0, nr_entries, 0);
    return tree;
}
