/* MRAM at any address: the words at both ends are shared with others, so they are changed under a
 * virtual mutex.
 */
#include <defs.h>
#include <mram_unaligned.h>

#include "runtime.h"

#define MOST_BYTES 2048u /* of one transfer */

VMUTEX_INIT(__mram_unaligned_access_virtual_locks, 1 << __MRAM_UNALIGNED_ACCESS_LOG_NB_VLOCK, 1)
__dma_aligned uint8_t __mram_unaligned_access_buffer[DPU_NR_THREADS << 3];

static uint16_t lock_of(uintptr_t mram) {
    return (mram >> 3) & ((1u << __MRAM_UNALIGNED_ACCESS_LOG_NB_VLOCK) - 1u);
}

static uint8_t *own_buffer(void) { return &__mram_unaligned_access_buffer[me() << 3]; }

static void dma(uintptr_t mram, const void *wram, uint32_t bytes, enum emu_access direction,
                const void *pc) {
    engine_after(COST_DMA)->dma((uint32_t)mram, (void *)(uintptr_t)wram, bytes, direction, pc);
}

static uint8_t *fetch(uintptr_t mram, const void *pc) {
    __emu_vmutex_lock(&__mram_unaligned_access_virtual_locks, lock_of(mram), pc);
    dma(mram & ~(uintptr_t)7, own_buffer(), 8, EMU_READ, pc);
    return own_buffer() + (mram & 7);
}

static void store(uintptr_t mram, const void *pc) {
    dma(mram & ~(uintptr_t)7, own_buffer(), 8, EMU_WRITE, pc);
    __emu_vmutex_unlock(&__mram_unaligned_access_virtual_locks, lock_of(mram), pc);
}

void *__emu_mram_word_fetch(uintptr_t mram) { return fetch(mram, CALLER); }
void __emu_mram_word_store(uintptr_t mram) { store(mram, CALLER); }

static void check_size(unsigned int bytes, const char *function, const void *pc) {
    if (bytes > MOST_BYTES)
        engine_after(0)->fault(EMU_FAULT_LIBRARY, pc, "%s of %u B: at most %u", function, bytes,
                               MOST_BYTES);
}

void *mram_read_unaligned(const __mram_ptr void *from, void *buffer, unsigned int nb_of_bytes) {
    check_size(nb_of_bytes, "mram_read_unaligned", CALLER);
    const uint32_t skipped = (uintptr_t)from & 7;
    const uintptr_t start = (uintptr_t)from - skipped;
    uint8_t *const to = buffer;
    const uint32_t bytes = nb_of_bytes == 0 ? 0 : (skipped + nb_of_bytes + 7u) & ~7u;
    const uint32_t first = bytes < MOST_BYTES ? bytes : MOST_BYTES;
    if (first != 0) dma(start, to, first, EMU_READ, CALLER);
    if (first != bytes) dma(start + first, to + first, bytes - first, EMU_READ, CALLER);
    return to + skipped;
}

/* Part of one word. */
static void patch(uintptr_t mram, const uint8_t *from, uint32_t bytes, const void *pc) {
    report(from, bytes, EMU_READ, pc);
    uint8_t *const at = fetch(mram, pc);
    for (uint32_t i = 0; i < bytes; ++i) at[i] = from[i];
    emu_count += COST_STRING(bytes);
    store(mram, pc);
}

void mram_write_unaligned(const void *from, __mram_ptr void *dest, unsigned int nb_of_bytes) {
    const void *const pc = CALLER;
    const uint8_t *source = from;
    uintptr_t mram = (uintptr_t)dest;
    check_size(nb_of_bytes, "mram_write_unaligned", pc);
    if ((((uintptr_t)source ^ mram) & 7) != 0)
        engine_after(0)->fault(EMU_FAULT_LIBRARY, pc,
                               "mram_write_unaligned from %p to MRAM 0x%x: the addresses differ "
                               "modulo 8",
                               from, (uint32_t)mram);
    uint32_t head = -mram & 7;
    if (head > nb_of_bytes) head = nb_of_bytes;
    const uint32_t middle = (nb_of_bytes - head) & ~7u;
    const uint32_t tail = nb_of_bytes - head - middle;
    if (head != 0) patch(mram, source, head, pc);
    if (middle != 0) dma(mram + head, source + head, middle, EMU_WRITE, pc);
    if (tail != 0) patch(mram + head + middle, source + head + middle, tail, pc);
}
