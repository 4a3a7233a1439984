#include "search.h"

uint32_t search(uint32_t root, uint32_t key, seqreader_buffer_t cache) {
    __dma_aligned node_t node;
    mram_read(&nodes[root], &node, sizeof(node));
    while (node.left != LEAF)
        mram_read(&nodes[key < node.key ? node.left : node.right], &node, sizeof(node));

    seqreader_t reader;
    const entry_t *entry =
        seqread_init(cache, (__mram_ptr void *)&entries[node.right], &reader);
    for (uint32_t i = 0; i < node.key; i++) {
        if (entry->key == key)
            return entry->tag;
        entry = seqread_get((void *)entry, sizeof(*entry), &reader);
    }
    return NOT_FOUND;
}
