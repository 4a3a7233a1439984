#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

#define BLOCK_SIZE (1 << BL) /* bytes */
#define MODULUS 65521u

/* Of a block. */
typedef struct {
    uint32_t a; /* sum of the bytes */
    uint32_t b; /* sum of these sums */
} checksum_t;

typedef struct {
    uint32_t nr_blocks;
    uint32_t output; /* byte offset of the checksums in MRAM, from the blocks */
} dpu_arguments_t;

#endif
