/* Reads items from MRAM in sequence, forwards by given steps and at given places. */
#include <defs.h>
#include <mram.h>
#include <seqread.h>

__mram_noinit uint8_t data[1 << 16];
__host uint32_t start, item_bytes, steps;
__host uint32_t by[500], places[500];
__host uint64_t forwards, seeks, last; /* hashes of what was read */
__host uint32_t strayed;               /* times that seqread_tell was wrong */

static uint64_t hash(uint64_t so_far, const uint8_t *bytes, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) so_far = (so_far ^ bytes[i]) * 1099511628211u;
    return so_far;
}

int main(void) {
    seqreader_t reader;
    __mram_ptr uint8_t *at = data + start;
    uint8_t *item = seqread_init(seqread_alloc(), at, &reader);
    for (uint32_t i = 0; i < steps; ++i) {
        forwards = hash(forwards, item, item_bytes);
        item = seqread_get(item, by[i], &reader);
        at += by[i];
        strayed += seqread_tell(item, &reader) != at;
    }
    for (uint32_t i = 0; i < steps; ++i) {
        item = seqread_seek(data + places[i], &reader);
        strayed += seqread_tell(item, &reader) != data + places[i];
        seeks = hash(seeks, item, item_bytes);
    }
    /* The last bytes of MRAM, up to the very end. */
    const uint32_t end = 0x08000000u + (64u << 20);
    uint8_t tail[40];
    __dma_aligned uint8_t words[48];
    for (uint32_t i = 0; i < sizeof words; ++i) words[i] = (uint8_t)(i * 7 + 1);
    mram_write(words, (__mram_ptr void *)(uintptr_t)(end - 48), 48);
    item = seqread_seek((__mram_ptr void *)(uintptr_t)(end - 40), &reader);
    for (uint32_t i = 0; i < sizeof tail; ++i) {
        tail[i] = *item;
        item = seqread_get(item, 1, &reader);
    }
    last = hash(0, tail, sizeof tail);
    return 0;
}
