/* Printing. The engine formats with the host's printf and keeps the text in the DPU's log. */
#include <stdio.h>
#include <string.h>

#include "runtime.h"

static size_t length(const char *text) {
    size_t bytes = 0;
    while (text[bytes] != '\0') ++bytes;
    return bytes;
}

static void print(const void *pc, uint64_t cost, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    engine_after(cost)->print(format, arguments, pc);
    va_end(arguments);
}

void printf(const char *restrict format, ...) {
    va_list arguments;
    va_start(arguments, format);
    engine_after(COST_PRINT(length(format)))->print(format, arguments, CALLER);
    va_end(arguments);
}

void puts(const char *str) { print(CALLER, COST_PRINT(length(str)), "%s\n", str); }

void putchar(int c) { print(CALLER, COST_PRINT(1), "%c", c); }
