/* Memory of DPUs. MRAM is a private view of one file that holds the pattern of memory nobody has
 * written: pages cost nothing until they are. Chunks that the host overwrites as a whole become
 * memory of their own, in large pages: a launch then misses fewer translations. Each DPU's MRAM lies
 * in a window of 4 GiB of reserved addresses, so that no 32-bit MRAM pointer, however wrong, reaches
 * anything else. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#define CHUNK (2ull << 20) /* a large page of x86-64 */

/* Looks like neither zero, a small number, a pointer nor a float that passes for a result. */
static const uint8_t pattern[8] = {0xde, 0xad, 0xbe, 0xef, 0xfe, 0xed, 0xfa, 0xce};

void emu_fill_pattern(uint8_t *at, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) at[i] = pattern[i % sizeof pattern];
}

static pthread_mutex_t pattern_lock = PTHREAD_MUTEX_INITIALIZER;
static int pattern_file = -1;
static uint32_t pattern_bytes;

bool emu_write_all(int file, const uint8_t *from, size_t bytes) {
    while (bytes > 0) {
        const ssize_t written = write(file, from, bytes);
        if (written <= 0) return false;
        from += written;
        bytes -= (size_t)written;
    }
    return true;
}

/* A file of at least so many bytes of pattern. Grown, never shrunk: older views stay valid. */
static int open_pattern(uint32_t bytes) {
    static uint8_t block[1 << 20];
    pthread_mutex_lock(&pattern_lock);
    if (pattern_file < 0) {
        pattern_file = memfd_create("pim_emu MRAM", MFD_CLOEXEC);
        emu_fill_pattern(block, sizeof block);
    }
    bool good = pattern_file >= 0;
    while (good && pattern_bytes < bytes) {
        good = emu_write_all(pattern_file, block, sizeof block);
        pattern_bytes += (uint32_t)sizeof block;
    }
    const int file = good ? pattern_file : -1;
    pthread_mutex_unlock(&pattern_lock);
    return file;
}

static size_t span(uint32_t count) {
    return (count + EMU_WINDOWS_BEYOND) * EMU_WINDOW_STEP;
}

/* Windows begin where a large page may; what is reserved for that is given back. */
uint8_t *emu_map_windows(uint32_t count) {
    const size_t bytes = span(count);
    uint8_t *at = mmap(NULL, bytes + CHUNK, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return NULL;
    const size_t before = (CHUNK - (uintptr_t)at % CHUNK) % CHUNK;
    if (before > 0) munmap(at, before);
    munmap(at + before + bytes, CHUNK - before);
    return at + before;
}

void emu_unmap_windows(uint8_t *windows, uint32_t count) {
    munmap(windows, span(count));
}

void emu_make_whole(uint8_t *mram, uint32_t offset, size_t bytes, uint64_t *whole) {
    const size_t end = offset + bytes;
    for (size_t chunk = (offset + CHUNK - 1) / CHUNK; (chunk + 1) * CHUNK <= end; ++chunk) {
        if (chunk >= 64 || *whole >> chunk & 1) continue;
        uint8_t *at = mram + chunk * CHUNK;
        if (mmap(at, CHUNK, PROT_READ | PROT_WRITE,
                 MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != at)
            return; /* the view of the pattern serves too */
        madvise(at, CHUNK, MADV_HUGEPAGE);
        *whole |= 1ull << chunk;
    }
}

bool emu_map_mram(uint8_t *at, uint32_t bytes) {
    const int file = open_pattern(bytes);
    if (file < 0) return false;
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_NORESERVE, file,
                0) == at;
}

uint8_t *emu_map_stacks(size_t bytes) {
    static _Atomic(uintptr_t) low, high = EMU_LOW;
    const size_t most_low = 512u << 20;
    if (atomic_fetch_add(&low, bytes) + bytes <= most_low) {
        uint8_t *at = emu_map_low(bytes);
        if (at != NULL) return at;
    }
    for (;;) {
        const uintptr_t wanted = atomic_fetch_add(&high, bytes);
        if (wanted + bytes > EMU_WINDOW) break;
        uint8_t *at = emu_map_at(wanted, bytes);
        if (at != NULL) return at;
    }
    return emu_map_below(EMU_WINDOW, bytes);
}
