/* The DPU program of the fuzzer, in two sizes: `mode` says how a launch goes. */
#include <defs.h>
#include <mram.h>
#include <stdint.h>
#include <stdio.h>

__host uint32_t mode, words[WORDS];
__host uint64_t runs;
__mram_noinit uint8_t buffer[BYTES];

int main(void) {
    __dma_aligned uint8_t part[64];
    if (me() != 0) return 0;
    ++runs;
    if (mode == 2) printf("run %lu\n", (unsigned long)runs);
    if (mode == 1) mram_read((__mram_ptr void *)0x0c000000, part, 8); /* past its end */
    for (int i = 0; i < WORDS; ++i) words[i] += 1;
    mram_read(buffer, part, 64);
    for (int i = 0; i < 64; ++i) part[i] ^= 0x5a;
    mram_write(part, buffer, 64);
    return 0;
}
