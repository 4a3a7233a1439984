/* Transfers between MRAM and WRAM: performed as the hardware does them, and charged to the DMA
 * engine. What is known of the hardware, and from where, stands in docs/pim-emu.md. */
#include <immintrin.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define LINE 64u

/* Into the second level of the cache: in the first one, the transfers of all tasklets evict each
 * other. */
static void prefetch(const uint8_t *mram, size_t bytes) {
    for (size_t i = 0; i < bytes; i += LINE) _mm_prefetch((const char *)mram + i, _MM_HINT_T1);
}

static struct emu_stream *stream_of(struct emu_run *run, const void *pc) {
    const uint32_t hash = (uint32_t)(uintptr_t)pc * 2654435761u;
    return &run->tasklets[run->current].streams[hash >> (32 - EMU_STREAM_BITS)];
}

/* Where a loop reads block after block, the next one comes while the tasklet computes; any other
 * while other tasklets run between request and copy, if they do. */
static void prefetch_read(struct emu_run *run, uint32_t offset, uint32_t bytes, const void *pc) {
    struct emu_stream *stream = stream_of(run, pc);
    const uint32_t step = offset - stream->last, next = offset + step;
    const bool even = stream->pc == pc && stream->step == step;
    if (!even)
        prefetch(run->dpu->mram + offset, bytes);
    else if (next < run->machine->mram_bytes)
        prefetch(run->dpu->mram + next, bytes);
    *stream = (struct emu_stream){pc, offset, step};
}

/* By lines: for hundreds of bytes, memcpy and the string instruction take longer to begin. */
static void copy(uint8_t *restrict to, const uint8_t *restrict from, size_t bytes) {
    for (; bytes >= LINE; bytes -= LINE, to += LINE, from += LINE) {
        const __m128i *source = (const __m128i *)from;
        __m128i *target = (__m128i *)to;
        const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
        _mm_storeu_si128(target, a);
        _mm_storeu_si128(target + 1, b);
        _mm_storeu_si128(target + 2, c);
        _mm_storeu_si128(target + 3, d);
    }
    memcpy(to, from, bytes);
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
    if (offset_of(machine, mram) > machine->mram_bytes - bytes)
        emu_fail(run, EMU_FAULT_MRAM_BOUNDS, pc,
                 "%u B at 0x%08x, MRAM is 0x%08x to 0x%08x", bytes, mram, EMU_MRAM_BASE,
                 EMU_MRAM_BASE + machine->mram_bytes - 1);
    if (!emu_in_wram(run, wram, bytes))
        emu_fail(run, EMU_FAULT_DMA_WRAM, pc, "%u B at %p do not lie in WRAM", bytes, wram);
}

struct operands {
    uint32_t mram;
    uintptr_t wram;
    uint32_t bytes;
};

static bool is_odd(const struct emu_machine *machine, struct operands asked) {
    const uint32_t below = machine->dma_alignment_bytes - 1; /* of a power of two */
    return asked.bytes - machine->dma_min_bytes >
               machine->dma_max_bytes - machine->dma_min_bytes ||
           ((asked.bytes | asked.mram | asked.wram) & below) != 0;
}

/* The instruction ignores the low bits of both addresses. It holds the size as a number of units
 * less one, in as many bits as the largest size needs; a size that they cannot hold wraps. */
static struct operands as_taken(const struct emu_machine *machine, struct operands asked) {
    const uint32_t unit = machine->dma_alignment_bytes, units = machine->dma_max_bytes / unit;
    const uint32_t field = (asked.bytes / unit - 1) & (units - 1);
    return (struct operands){asked.mram & ~(unit - 1), asked.wram & ~(uintptr_t)(unit - 1),
                             (field + 1) * unit};
}

/* What the documentation forbids and the hardware does: stop, or warn. */
static void tell_oddities(struct emu_run *run, struct operands asked, struct operands taken,
                          const void *pc) {
    const struct emu_machine *machine = run->machine;
    const uint32_t unit = machine->dma_alignment_bytes;
    char text[128];
    if (asked.bytes != taken.bytes) {
        snprintf(text, sizeof text, "%u B, must be a multiple of %u from %u to %u; a DPU moves %u B",
                 asked.bytes, unit, machine->dma_min_bytes, machine->dma_max_bytes, taken.bytes);
        emu_tell_odd(run, EMU_FAULT_DMA_SIZE, 1, text, pc);
    }
    if (asked.mram != taken.mram) {
        snprintf(text, sizeof text, "MRAM address 0x%08x is no multiple of %u; a DPU takes 0x%08x",
                 asked.mram, unit, taken.mram);
        emu_tell_odd(run, EMU_FAULT_DMA_ALIGNMENT, 2, text, pc);
    }
    if (asked.wram != taken.wram) {
        snprintf(text, sizeof text, "WRAM address 0x%zx is no multiple of %u; a DPU takes 0x%zx",
                 (size_t)asked.wram, unit, (size_t)taken.wram);
        emu_tell_odd(run, EMU_FAULT_DMA_ALIGNMENT, 4, text, pc);
    }
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
    copy(reads ? wram : mram, reads ? mram : wram, bytes);
}

void emu_dma(uint32_t mram, void *wram, uint32_t bytes, enum emu_access direction,
             const void *pc) {
    struct emu_run *run = emu_current;
    const bool reads = direction == EMU_READ;
    const struct operands asked = {mram, (uintptr_t)wram, bytes};
    const bool odd = is_odd(run->machine, asked);
    if (odd) {
        const struct operands taken = as_taken(run->machine, asked);
        mram = taken.mram;
        wram = (void *)taken.wram;
        bytes = taken.bytes;
    }
    const uint32_t offset = offset_of(run->machine, mram);
    if (reads) prefetch_read(run, offset, bytes, pc);
    emu_account(run, pc);
    if (odd) tell_oddities(run, asked, (struct operands){mram, (uintptr_t)wram, bytes}, pc);
    check(run, mram, wram, bytes, pc);
    if (run->races != NULL) {
        emu_race_mram(run, offset, bytes, direction, pc);
        emu_race_wram(run, wram, bytes, reads ? EMU_WRITE : EMU_READ, pc);
    }
    move(run, offset, wram, bytes, reads);
    charge(run, bytes, reads);
}
