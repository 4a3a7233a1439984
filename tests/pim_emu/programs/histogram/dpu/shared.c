#include <defs.h>
#include <mutex_pool.h>

#include "kernels.h"

MUTEX_POOL_INIT(bins_pool, 16);

void histogram_shared(pixel_t *cache) {
    uint32_t byte_index = me() * BLOCK_SIZE;
    unsigned int n;
    while ((n = next_block(&byte_index, cache)) != 0) {
        for (unsigned int i = 0; i < n; i++) {
            const unsigned int bin = bin_of(cache[i]);
            mutex_pool_lock(&bins_pool, bin);
            histogram[bin]++;
            mutex_pool_unlock(&bins_pool, bin);
        }
    }
}
