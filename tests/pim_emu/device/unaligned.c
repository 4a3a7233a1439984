/* Copies pieces of MRAM of any size from any address to any other, which share words. */
#include <defs.h>
#include <mram_unaligned.h>

struct piece {
    uint32_t from, to, bytes, unused;
};

__mram_noinit uint8_t source[1 << 12];
__mram_noinit uint8_t target[1 << 15];
__mram_noinit struct piece pieces[2048];
__mram_noinit int32_t numbers[4];
__mram_noinit uint8_t small[8];
__host uint32_t count;

static __dma_aligned uint8_t in[NR_TASKLETS][2048 + 16], out[NR_TASKLETS][2048 + 8];
static __dma_aligned struct piece piece[NR_TASKLETS];

static void add(int *number, void *much) { *number += *(int *)much; }
static void add_byte(uint8_t *number, void *much) { *number += *(uint8_t *)much; }

int main(void) {
    const uint32_t self = me();
    for (uint32_t i = self; i < count; i += NR_TASKLETS) {
        mram_read(&pieces[i], &piece[self], sizeof *piece);
        const uint32_t bytes = piece[self].bytes;
        const uint8_t *const got = mram_read_unaligned(source + piece[self].from, in[self], bytes);
        uint8_t *const put = out[self] + piece[self].to % 8;
        for (uint32_t k = 0; k < bytes; ++k) put[k] = got[k];
        mram_write_unaligned(put, target + piece[self].to, bytes);
    }
    int much = (int)self + 1;
    uint8_t little = (uint8_t)much;
    for (uint32_t i = 0; i < 40; ++i) {
        mram_update_int_atomic(&numbers[i % 3], add, &much);
        mram_update_byte_atomic(&small[i % 7], add_byte, &little);
    }
    mram_write_int_atomic(&numbers[3], 1234567);
    mram_write_byte_atomic(&small[7], 77);
    return 0;
}
