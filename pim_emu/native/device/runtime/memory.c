/* memcpy and its kin, by the engine: the compiler calls them too, for large objects. */
#include <string.h>

#include "runtime.h"

void *memcpy(void *destination, const void *source, size_t size) {
    report(source, size, EMU_READ, CALLER);
    report(destination, size, EMU_WRITE, CALLER);
    return engine_after(COST_COPY(size))->copy(destination, source, size, CALLER);
}

void *memmove(void *destination, const void *source, size_t size) {
    report(source, size, EMU_READ, CALLER);
    report(destination, size, EMU_WRITE, CALLER);
    return engine_after(COST_COPY(size))->move(destination, source, size, CALLER);
}

void *memset(void *area, int value, size_t size) {
    report(area, size, EMU_WRITE, CALLER);
    return engine_after(COST_FILL(size))->fill(area, value, size, CALLER);
}

int memcmp(const void *area1, const void *area2, size_t size) {
    report(area1, size, EMU_READ, CALLER);
    report(area2, size, EMU_READ, CALLER);
    return engine_after(COST_COMPARE(size))->compare(area1, area2, size, CALLER);
}

void *memchr(const void *area, int character, size_t size) {
    const unsigned char *const bytes = area;
    size_t at = 0;
    while (at < size && bytes[at] != (unsigned char)character) ++at;
    emu_count += COST_STRING(at);
    report(area, at < size ? at + 1 : size, EMU_READ, CALLER);
    return at < size ? (void *)(bytes + at) : NULL;
}
