/* Prints numbers in the formats that the host gives. */
#include <defs.h>
#include <inttypes.h>
#include <stdio.h>

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"

__host char formats[20][16];
__host int64_t whole[20];
__host double real[20];
__host uint32_t count;

int main(void) {
    for (uint32_t i = 0; i < count; ++i) {
        printf(formats[i], whole[i]);
        printf("%c", '\n');
    }
    for (uint32_t i = 0; i < count; ++i) printf("%e %.3f %10.4g\n", real[i], real[i], real[i]);
    printf("%d %u %x %5d|%-5d|%05d %%\n", -7, 7u, 255u, 42, 42, 42);
    printf("%s|%8s|%-8s|%.2s\n", "text", "text", "text", "text");
    printf("%" PRIu64 " %" PRId32 "\n", UINT64_MAX, INT32_MIN);
    puts("line");
    putchar('x');
    putchar('\n');
    return 0;
}
