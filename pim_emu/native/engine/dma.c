/* Transfers between MRAM and WRAM: checked, performed, and charged to the DMA engine. */
#include <immintrin.h>
#include <string.h>

#include "internal.h"

#define LINE 64u
#define AHEAD 4096u /* of what is read or written, where tasklets go through MRAM side by side */

/* Measured on MRAM beyond the caches: the host's own prefetching needs longer runs than a transfer
 * is; and for hundreds of bytes, the string instruction is faster than the vector loops of memcpy. */
static void copy(void *to, const void *from, const uint8_t *mram, size_t bytes) {
    if (bytes <= LINE) {
        memcpy(to, from, bytes);
        return;
    }
    for (size_t i = 0; i < bytes; i += LINE)
        _mm_prefetch((const char *)mram + AHEAD + i, _MM_HINT_T0);
    size_t words = bytes / 8, rest = bytes % 8;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
    memcpy(to, from, rest);
}

bool emu_in_wram(const struct emu_run *run, const void *address, size_t bytes) {
    const uint8_t *at = address;
    const uint8_t *wram = run->image->wram, *end = wram + run->machine->wram_bytes;
    if (at >= wram && at <= end && bytes <= (size_t)(end - at)) return true;
    const uint8_t *low = run->tasklets[0].stack_bottom;
    const uint8_t *high = run->tasklets[run->count - 1].stack_top;
    return at >= low && at <= high && bytes <= (size_t)(high - at);
}

/* The hardware looks at the low bits only: programs count from 0 or from where symbols lie. */
static uint32_t offset_of(const struct emu_machine *machine, uint32_t mram) {
    return mram < machine->mram_bytes ? mram : mram - EMU_MRAM_BASE;
}

static void check(struct emu_run *run, uint32_t mram, const void *wram, uint32_t bytes,
                  const void *pc) {
    const struct emu_machine *machine = run->machine;
    const uint32_t unit = machine->dma_alignment_bytes, below = unit - 1; /* a power of two */
    if (bytes < machine->dma_min_bytes || bytes > machine->dma_max_bytes || (bytes & below) != 0)
        emu_fail(run, EMU_FAULT_DMA_SIZE, pc, "%u B, must be a multiple of %u from %u to %u", bytes,
                 unit, machine->dma_min_bytes, machine->dma_max_bytes);
    if ((mram & below) != 0)
        emu_fail(run, EMU_FAULT_DMA_ALIGNMENT, pc, "MRAM address 0x%08x is no multiple of %u", mram,
                 unit);
    if (((uintptr_t)wram & below) != 0)
        emu_fail(run, EMU_FAULT_DMA_ALIGNMENT, pc, "WRAM address %p is no multiple of %u", wram,
                 unit);
    if (offset_of(machine, mram) > machine->mram_bytes - bytes)
        emu_fail(run, EMU_FAULT_MRAM_BOUNDS, pc,
                 "%u B at 0x%08x, MRAM is 0x%08x to 0x%08x", bytes, mram, EMU_MRAM_BASE,
                 EMU_MRAM_BASE + machine->mram_bytes - 1);
    if (!emu_in_wram(run, wram, bytes))
        emu_fail(run, EMU_FAULT_DMA_WRAM, pc, "%u B at %p do not lie in WRAM", bytes, wram);
}

/* The engine serves one transfer at a time; the latency of others overlaps with it. */
static void charge(struct emu_run *run, uint32_t bytes, bool reads) {
    const struct emu_machine *machine = run->machine;
    const double per_byte = machine->dma_cycles_per_byte;
    const double latency =
        (reads ? machine->dma_read_alpha : machine->dma_write_alpha) + per_byte * bytes;
    const double occupied = run->dma_smallest + per_byte * (bytes - machine->dma_min_bytes);
    const double start = run->dma_free > run->time ? run->dma_free : run->time;
    run->dma_free = start + occupied;
    run->dma_busy += occupied;
    emu_transfer_until(run, start + (latency > occupied ? latency : occupied));
    if (reads) {
        ++run->counters.dma_reads;
        run->counters.dma_read_bytes += bytes;
    } else {
        ++run->counters.dma_writes;
        run->counters.dma_write_bytes += bytes;
    }
}

static void move(struct emu_run *run, uint32_t offset, void *wram, uint32_t bytes, bool reads) {
    uint8_t *mram = run->dpu->mram + offset;
    copy(reads ? wram : mram, reads ? mram : wram, mram, bytes);
}

void emu_dma(uint32_t mram, void *wram, uint32_t bytes, enum emu_access direction,
             const void *pc) {
    struct emu_run *run = emu_current;
    const bool reads = direction == EMU_READ;
    const uint32_t offset = offset_of(run->machine, mram);
    if (!run->settings.checks) { /* nothing but the copy */
        emu_take_turns(run, pc);
        move(run, offset, wram, bytes, reads);
        return;
    }
    emu_account(run, pc);
    check(run, mram, wram, bytes, pc);
    if (run->races != NULL) {
        emu_race_mram(run, offset, bytes, direction, pc);
        emu_race_wram(run, wram, bytes, reads ? EMU_WRITE : EMU_READ, pc);
    }
    move(run, offset, wram, bytes, reads);
    charge(run, bytes, reads);
}
