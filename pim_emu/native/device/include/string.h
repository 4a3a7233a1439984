/* Areas of WRAM and strings in them. */
#ifndef DPU_STRING_H
#define DPU_STRING_H

#include <stddef.h>
#include <stdint.h>

void *memcpy(void *destination, const void *source, size_t size);
void *memmove(void *destination, const void *source, size_t size);
void *memset(void *area, int value, size_t size);
int memcmp(const void *area1, const void *area2, size_t size);
void *memchr(const void *area, int character, size_t size);

/* The compiler driver asks for these where a source passes pointers to MRAM, which the functions
 * above cannot take. Addresses tell at run time which memory is meant, and may be mixed. */
#ifdef __EMU_ANY_MEMORY
void *__emu_memcpy_any(uintptr_t destination, uintptr_t source, size_t size);
void *__emu_memmove_any(uintptr_t destination, uintptr_t source, size_t size);
void *__emu_memset_any(uintptr_t area, int value, size_t size);
int __emu_memcmp_any(uintptr_t area1, uintptr_t area2, size_t size);
#define memcpy(destination, source, size)                                                          \
    __emu_memcpy_any((uintptr_t)(destination), (uintptr_t)(source), size)
#define memmove(destination, source, size)                                                         \
    __emu_memmove_any((uintptr_t)(destination), (uintptr_t)(source), size)
#define memset(area, value, size) __emu_memset_any((uintptr_t)(area), value, size)
#define memcmp(area1, area2, size) __emu_memcmp_any((uintptr_t)(area1), (uintptr_t)(area2), size)
#endif

size_t strlen(const char *string);
size_t strnlen(const char *string, size_t max_len);
int strcmp(const char *string1, const char *string2);
int strncmp(const char *string1, const char *string2, size_t size);
char *strcat(char *destination, const char *source);
char *strncat(char *destination, const char *source, size_t size);
char *strcpy(char *destination, const char *source);
char *strncpy(char *destination, const char *source, size_t size);
char *stpcpy(char *destination, const char *source);
char *stpncpy(char *destination, const char *source, size_t size);

char *strchr(const char *string, int character);
char *strrchr(const char *string, int character);
size_t strspn(const char *string, const char *accept);
size_t strcspn(const char *string, const char *reject);
char *strpbrk(const char *string, const char *accept);
char *strstr(const char *haystack, const char *needle);
char *strtok_r(char *str, const char *delim, char **saveptr);
char *strsep(char **stringp, const char *delim);

/* In place, Latin letters only. */
char *strlwr(char *string);
char *strupr(char *string);
char *strrev(char *string);

char *strerror(int errnum); /* NULL: no such error */

/* There are no locales. */
#define strcoll strcmp
#define strxfrm strncpy

#endif
