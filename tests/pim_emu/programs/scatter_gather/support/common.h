#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

#define BLOCK_SIZE (1u << BL)
#define BLOCK_ELEMENTS (BLOCK_SIZE / (uint32_t)sizeof(uint32_t))
#define MAX_ROWS 1024 /* of a DPU */
#define MAX_ELEMENTS (1u << 18)

/* A row in a DPU: where it begins and how long it is, both in elements and even. */
typedef struct {
    uint32_t first;
    uint32_t length;
} row_t;

typedef struct {
    uint32_t nr_rows;
    uint32_t scale;
} arguments_t;

#endif
