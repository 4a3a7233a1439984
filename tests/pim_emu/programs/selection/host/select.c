#include "select.h"

#include <stdlib.h>

void make_records(record_t *records, size_t count) {
    srand(7);
    for (size_t i = 0; i < count; i++) {
        records[i].customer = (uint32_t)rand();
        /* Some stretches have many records to select, others none. */
        records[i].amount = i / 700 % 3 == 0 ? rand() % 1000 - 2000 : rand() % 2000 - 1000;
    }
}

size_t select_host(record_t *output, const record_t *input, size_t count, int32_t threshold) {
    size_t selected = 0;
    for (size_t i = 0; i < count; i++)
        if (input[i].amount > threshold && input[i].customer % 2 == 0)
            output[selected++] = input[i];
    return selected;
}
