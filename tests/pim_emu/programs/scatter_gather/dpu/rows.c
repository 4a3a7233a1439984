#include "rows.h"

uint64_t scale_row(row_t row, uint32_t scale, uint32_t *cache) {
    uint64_t sum = 0;
    for (uint32_t done = 0; done < row.length; done += BLOCK_ELEMENTS) {
        __mram_ptr uint32_t *where = &elements[row.first + done];
        const uint32_t left = row.length - done;
        const uint32_t n = left < BLOCK_ELEMENTS ? left : BLOCK_ELEMENTS;
        mram_read(where, cache, n * sizeof(*cache));
        for (uint32_t i = 0; i < n; i++) {
            cache[i] = cache[i] * scale + done + i;
            sum += cache[i];
        }
        mram_write(cache, where, n * sizeof(*cache));
    }
    return sum;
}
