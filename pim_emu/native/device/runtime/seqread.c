/* Sequential readers: the cache holds two pages, and the item begins in the first. */
#define SEQREAD_CACHE_SIZE 32 /* any: the functions for all sizes are defined here */
#include <seqread.h>

#include "runtime.h"

#define MRAM_BYTES (1u << 26)

/* Both pages, as far as there is MRAM: an item may be its last. */
static void load(seqreader_t *reader, uintptr_t mram, uint32_t page, const void *pc) {
    const uintptr_t end = (mram < EMU_MRAM_BASE ? 0 : EMU_MRAM_BASE) + MRAM_BYTES;
    const uintptr_t left = mram < end ? end - mram : 0;
    reader->mram_addr = mram;
    if (left != 0)
        engine_after(COST_SEQREAD_LOAD)
            ->dma((uint32_t)mram, (void *)reader->wram_cache,
                  left < 2 * page ? (uint32_t)left : 2 * page, EMU_READ, pc);
}

static void *init(seqreader_buffer_t cache, uintptr_t mram, seqreader_t *reader, uint32_t page,
                  const void *pc) {
    reader->wram_cache = cache;
    load(reader, mram & ~(uintptr_t)(page - 1), page, pc);
    return (void *)(cache + (mram & (page - 1)));
}

static void *get(void *ptr, uint32_t inc, seqreader_t *reader, uint32_t page, const void *pc) {
    if (inc > page)
        engine_after(0)->fault(EMU_FAULT_LIBRARY, pc,
                               "seqread_get by %u B with SEQREAD_CACHE_SIZE %u", inc, page);
    emu_count += COST_SEQREAD_GET;
    uintptr_t offset = (uintptr_t)ptr + inc - reader->wram_cache;
    if (offset >= page) {
        load(reader, reader->mram_addr + page, page, pc);
        offset -= page;
    }
    return (void *)(reader->wram_cache + offset);
}

static void *seek(uintptr_t mram, seqreader_t *reader, uint32_t page, const void *pc) {
    const uintptr_t start = mram & ~(uintptr_t)(page - 1);
    emu_count += COST_SEQREAD_GET;
    if (start != reader->mram_addr) load(reader, start, page, pc);
    return (void *)(reader->wram_cache + (mram - start));
}

static uintptr_t tell(const void *ptr, const seqreader_t *reader) {
    emu_count += COST_CALL + 2;
    return reader->mram_addr + ((uintptr_t)ptr - reader->wram_cache);
}

#define READERS_OF(size)                                                                           \
    seqreader_buffer_t seqread##size##_alloc(void) {                                               \
        return (uintptr_t)__emu_heap_take(2 * size, size, "seqread_alloc", CALLER);                \
    }                                                                                              \
    void *seqread##size##_init(seqreader_buffer_t cache, __mram_ptr void *mram,                    \
                               seqreader_t *reader) {                                              \
        return init(cache, (uintptr_t)mram, reader, size, CALLER);                                 \
    }                                                                                              \
    void *seqread##size##_get(void *ptr, uint32_t inc, seqreader_t *reader) {                      \
        return get(ptr, inc, reader, size, CALLER);                                                \
    }                                                                                              \
    void *seqread##size##_seek(__mram_ptr void *mram, seqreader_t *reader) {                       \
        return seek((uintptr_t)mram, reader, size, CALLER);                                        \
    }                                                                                              \
    __mram_ptr void *seqread##size##_tell(void *ptr, seqreader_t *reader) {                        \
        return (__mram_ptr void *)tell(ptr, reader);                                               \
    }

READERS_OF(32)
READERS_OF(64)
READERS_OF(128)
READERS_OF(256)
READERS_OF(512)
READERS_OF(1024)
