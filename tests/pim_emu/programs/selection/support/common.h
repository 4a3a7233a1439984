#ifndef COMMON_H
#define COMMON_H

#include <stdbool.h>
#include <stdint.h>

#define BLOCK_SIZE (1 << BL) /* bytes */

typedef struct {
    uint32_t customer;
    int32_t amount;
} record_t; /* 8 bytes: any number of them can be transferred */

#define BLOCK_RECORDS (BLOCK_SIZE / (int)sizeof(record_t))

/* Which records are selected. */
static inline bool pred(const record_t *record, int32_t threshold) {
    return record->amount > threshold && (record->customer & 1) == 0;
}

typedef struct {
    uint32_t records;
    uint32_t output; /* byte offset of the output in MRAM, from the input */
    int32_t threshold;
    uint32_t padding;
} dpu_arguments_t;

typedef struct {
    uint32_t selected;
    uint32_t padding;
    uint64_t cycles;
} dpu_results_t;

#endif
