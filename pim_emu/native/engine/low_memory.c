/* Memory below 2 GiB, which the 32-bit relocations of DPU programs take. The kernel offers the second
 * GiB alone to those who ask for low memory; and a host program that is not position-independent,
 * as Debian's python3, has its heap grow through both. So whatever gap there is must do, and some
 * memory is kept from the heap as soon as the library is loaded. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

#include "internal.h"

#define LOWEST (64u << 10) /* below, the kernel maps nothing */
#define ABOVE_MRAM (256u << 20) /* an address of MRAM is told from others by its value */
#define SPARE (16u << 20)

/* Kept from the heap, and given back one by one where there is no other gap. */
static _Atomic(uint8_t *) spares[16];

static uint8_t *map(uintptr_t at, size_t bytes, int protection, int flags) {
    void *got = mmap((void *)at, bytes, protection,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    if (got == MAP_FAILED) return NULL;
    if (at == 0 || got == (void *)at) return got;
    munmap(got, bytes); /* a kernel that takes MAP_FIXED_NOREPLACE for a hint */
    return NULL;
}

uint8_t *emu_map_at(uintptr_t at, size_t bytes) {
    return map(at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE);
}

/* At the upper end of a gap: a heap grows upwards from the lower end. */
static uint8_t *map_between(uintptr_t start, uintptr_t end, size_t bytes) {
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL) return NULL;
    uint8_t *at = NULL;
    uintptr_t gap = start;
    for (bool more = true; at == NULL && more && gap < end;) {
        char line[512];
        unsigned long first = end, last = end;
        more = fgets(line, sizeof line, maps) != NULL;
        if (more && sscanf(line, "%lx-%lx", &first, &last) != 2) continue; /* a long line's rest */
        const uintptr_t gap_end = first < end ? first : end;
        if (gap_end >= gap + bytes) at = emu_map_at((gap_end - bytes) & ~(EMU_PAGE - 1ul), bytes);
        if (last > gap) gap = last;
    }
    fclose(maps);
    return at;
}

uint8_t *emu_map_below(uintptr_t end, size_t bytes) {
    return map_between(ABOVE_MRAM, end, bytes);
}

uint8_t *emu_map_low(size_t bytes) {
    uint8_t *at = map(0, bytes, PROT_READ | PROT_WRITE, MAP_32BIT);
    if (at == NULL) at = emu_map_below(EMU_LOW, bytes);
    for (size_t i = 0; at == NULL && i < sizeof spares / sizeof spares[0]; ++i) {
        uint8_t *spare = atomic_exchange(&spares[i], NULL);
        if (spare == NULL) continue;
        munmap(spare, SPARE);
        at = emu_map_below(EMU_LOW, bytes);
    }
    return at != NULL ? at : map_between(LOWEST, EMU_MRAM_BASE, bytes);
}

__attribute__((constructor)) static void keep_spares(void) {
    for (size_t i = 0; i < sizeof spares / sizeof spares[0]; ++i)
        atomic_init(&spares[i], map(0, SPARE, PROT_NONE, MAP_32BIT));
}
