/* memcpy and its kin where an address may be one of MRAM. Like other accesses to MRAM without
 * mram_read and mram_write, they are charged as instructions, by assumed weights.
 */
#include <string.h>

#include "runtime.h"

static bool in_mram(uintptr_t address) {
    return address - EMU_MRAM_BASE < EMU_PROGRAM_BASE - EMU_MRAM_BASE;
}

static uint8_t load(uintptr_t address) {
    return in_mram(address) ? *(const __mram_ptr uint8_t *)address : *(const uint8_t *)address;
}

static void store(uintptr_t address, uint8_t value) {
    if (in_mram(address))
        *(__mram_ptr uint8_t *)address = value;
    else
        *(uint8_t *)address = value;
}

/* A word of MRAM is fetched for its bytes, and written back where they change. */
static void charge(uintptr_t address, size_t bytes, enum emu_access access, const void *pc) {
    report((const void *)address, bytes, access, pc);
    if (!in_mram(address) || bytes == 0) return;
    const uint64_t words = ((address + bytes + 7) >> 3) - (address >> 3);
    emu_count += words * (access == EMU_READ ? COST_MRAM_LOAD : COST_MRAM_STORE);
}

static void move(uintptr_t destination, uintptr_t source, size_t size, const void *pc) {
    emu_count += COST_COPY(size);
    charge(source, size, EMU_READ, pc);
    charge(destination, size, EMU_WRITE, pc);
    if (destination <= source)
        for (size_t i = 0; i < size; ++i) store(destination + i, load(source + i));
    else
        for (size_t i = size; i-- > 0;) store(destination + i, load(source + i));
}

void *__emu_memcpy_any(uintptr_t destination, uintptr_t source, size_t size) {
    move(destination, source, size, CALLER);
    return (void *)destination;
}

void *__emu_memmove_any(uintptr_t destination, uintptr_t source, size_t size) {
    move(destination, source, size, CALLER);
    return (void *)destination;
}

void *__emu_memset_any(uintptr_t area, int value, size_t size) {
    emu_count += COST_FILL(size);
    charge(area, size, EMU_WRITE, CALLER);
    for (size_t i = 0; i < size; ++i) store(area + i, (uint8_t)value);
    return (void *)area;
}

int __emu_memcmp_any(uintptr_t area1, uintptr_t area2, size_t size) {
    size_t at = 0;
    while (at < size && load(area1 + at) == load(area2 + at)) ++at;
    const size_t seen = at < size ? at + 1 : size;
    emu_count += COST_COMPARE(seen);
    charge(area1, seen, EMU_READ, CALLER);
    charge(area2, seen, EMU_READ, CALLER);
    return at < size ? load(area1 + at) - load(area2 + at) : 0;
}
