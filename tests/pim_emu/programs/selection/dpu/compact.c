#include "compact.h"

unsigned int compact(record_t *output, const record_t *input, unsigned int records,
                     int32_t threshold) {
    unsigned int pos = 0;
    for (unsigned int j = 0; j < records; j++) {
        if (pred(&input[j], threshold)) {
            output[pos] = input[j];
            pos++;
        }
    }
    return pos;
}
