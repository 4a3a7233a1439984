#include <alloc.h>
#include <defs.h>
#include <mutex.h>
#include <string.h>

#include "kernels.h"

MUTEX_INIT(merge_mutex);

void histogram_private(pixel_t *cache) {
    uint32_t *mine = mem_alloc(BINS * sizeof(*mine));
    memset(mine, 0, BINS * sizeof(*mine));

    uint32_t byte_index = me() * BLOCK_SIZE;
    unsigned int n;
    while ((n = next_block(&byte_index, cache)) != 0) {
        for (unsigned int i = 0; i < n; i++) {
            mine[bin_of(cache[i])] += 1;
        }
    }

    mutex_lock(merge_mutex);
    for (unsigned int bin = 0; bin < BINS; bin++) {
        histogram[bin] += mine[bin];
    }
    mutex_unlock(merge_mutex);
}
