#include "fletcher.h"

/* Sums of 64 bits do not overflow within a block, so that they are reduced once. */
checksum_t checksum_host(const uint8_t *bytes) {
    uint64_t a = 1, b = 0;
    for (int i = 0; i < BLOCK_SIZE; i++) {
        a += bytes[i];
        b += a;
    }
    return (checksum_t){(uint32_t)(a % MODULUS), (uint32_t)(b % MODULUS)};
}
