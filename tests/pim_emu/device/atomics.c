/* Atomic operations of C, which traced programs carry out through hooks. */
#include <defs.h>
#include <stdint.h>

#define ORDER __ATOMIC_SEQ_CST
#define OPERATIONS(bits)                                                                           \
    static uint##bits##_t cell##bits;                                                              \
    __host uint64_t results##bits[12];                                                             \
    static void operate##bits(uint##bits##_t x, uint##bits##_t y) {                                \
        uint64_t *r = results##bits;                                                               \
        uint##bits##_t expected = y;                                                               \
        __atomic_store_n(&cell##bits, x, ORDER);                                                   \
        *r++ = __atomic_load_n(&cell##bits, ORDER);                                                \
        *r++ = __atomic_fetch_add(&cell##bits, y, ORDER);                                          \
        *r++ = __atomic_fetch_sub(&cell##bits, 3, ORDER);                                          \
        *r++ = __atomic_fetch_or(&cell##bits, y, ORDER);                                           \
        *r++ = __atomic_fetch_and(&cell##bits, x, ORDER);                                          \
        *r++ = __atomic_fetch_xor(&cell##bits, y, ORDER);                                          \
        *r++ = __atomic_fetch_nand(&cell##bits, x, ORDER);                                         \
        *r++ = __atomic_exchange_n(&cell##bits, y, ORDER);                                         \
        *r++ = __atomic_compare_exchange_n(&cell##bits, &expected, x, 0, ORDER, ORDER);            \
        *r++ = __atomic_compare_exchange_n(&cell##bits, &expected, x, 1, ORDER, ORDER);            \
        *r++ = expected;                                                                           \
        *r++ = cell##bits;                                                                         \
    }

OPERATIONS(8)
OPERATIONS(16)
OPERATIONS(32)
OPERATIONS(64)
__host uint32_t everybody;

int main(void) {
    for (int i = 0; i < 50; ++i) __atomic_fetch_add(&everybody, me() + 1, __ATOMIC_RELAXED);
    if (me() == 0) {
        operate8((uint8_t)0xa5, (uint8_t)0xc3);
        operate16((uint16_t)0xa5b6, (uint16_t)0xc3d4);
        operate32(0xa5b6c7d8u, 0xc3d4e5f6u);
        operate64(0xa5b6c7d8e9fa0b1cu, 0xc3d4e5f607182930u);
    }
    return 0;
}
