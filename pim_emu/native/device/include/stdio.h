/* Printing to the DPU's log, which the host reads. */
#ifndef DPU_STDIO_H
#define DPU_STDIO_H
#pragma GCC system_header /* these return nothing, as the vendor's */

#include <attributes.h>
#include <stddef.h>
#include <stdint.h>

/* Reserves the room in MRAM that the vendor's log would take; the emulator's log lies elsewhere. */
#define STDOUT_BUFFER_INIT(size)                                                                   \
    _Static_assert((size) >= 8 && ((size) & 7) == 0,                                               \
                   "the size of the log must be a multiple of 8 and positive");                    \
    unsigned char __mram_noinit __stdout_buffer[size];                                             \
    const unsigned int __stdout_buffer_size = (size);

void printf(const char *restrict format, ...) __attribute__((format(printf, 1, 2)));
void puts(const char *str);
void putchar(int c);

#endif
