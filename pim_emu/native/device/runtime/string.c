/* Strings. */
#include <string.h>

#include "runtime.h"

/* Charge and report reading the first `bytes` of a string, or writing them. */
static void reads(const char *string, size_t bytes, const void *pc) {
    emu_count += COST_STRING(bytes);
    report(string, bytes, EMU_READ, pc);
}

static void writes(const char *string, size_t bytes, const void *pc) {
    report(string, bytes, EMU_WRITE, pc);
}

static size_t length(const char *string, size_t most) {
    size_t bytes = 0;
    while (bytes < most && string[bytes] != '\0') ++bytes;
    return bytes;
}

/* Copy `bytes` and then fill up to `all` with NUL. */
static void put(char *to, const char *from, size_t bytes, size_t all, const void *pc) {
    reads(from, bytes, pc);
    writes(to, all, pc);
    for (size_t i = 0; i < bytes; ++i) to[i] = from[i];
    for (size_t i = bytes; i < all; ++i) to[i] = '\0';
}

static bool contains(const char *set, char c) {
    while (*set != '\0' && *set != c) ++set;
    return *set != '\0';
}

/* Characters at the start of a string that are in a set, or are not. */
static size_t run_of(const char *string, const char *set, bool in, const void *pc) {
    size_t bytes = 0;
    while (string[bytes] != '\0' && contains(set, string[bytes]) == in) ++bytes;
    reads(string, bytes + 1, pc);
    reads(set, length(set, SIZE_MAX) + 1, pc);
    return bytes;
}

static int compare(const char *a, const char *b, size_t most, const void *pc) {
    size_t at = 0;
    while (at < most && a[at] == b[at] && a[at] != '\0') ++at;
    reads(a, at < most ? at + 1 : most, pc);
    reads(b, at < most ? at + 1 : most, pc);
    return at < most ? (unsigned char)a[at] - (unsigned char)b[at] : 0;
}

size_t strlen(const char *string) {
    const size_t bytes = length(string, SIZE_MAX);
    reads(string, bytes + 1, CALLER);
    return bytes;
}

size_t strnlen(const char *string, size_t max_len) {
    const size_t bytes = length(string, max_len);
    reads(string, bytes < max_len ? bytes + 1 : max_len, CALLER);
    return bytes;
}

int strcmp(const char *string1, const char *string2) {
    return compare(string1, string2, SIZE_MAX, CALLER);
}

int strncmp(const char *string1, const char *string2, size_t size) {
    return compare(string1, string2, size, CALLER);
}

char *strcpy(char *destination, const char *source) {
    const size_t bytes = length(source, SIZE_MAX);
    put(destination, source, bytes, bytes + 1, CALLER);
    return destination;
}

char *stpcpy(char *destination, const char *source) {
    const size_t bytes = length(source, SIZE_MAX);
    put(destination, source, bytes, bytes + 1, CALLER);
    return destination + bytes;
}

char *strncpy(char *destination, const char *source, size_t size) {
    put(destination, source, length(source, size), size, CALLER);
    return destination;
}

char *stpncpy(char *destination, const char *source, size_t size) {
    const size_t bytes = length(source, size);
    put(destination, source, bytes, size, CALLER);
    return destination + bytes;
}

static void append(char *to, const char *from, size_t bytes, const void *pc) {
    const size_t old = length(to, SIZE_MAX);
    reads(to, old + 1, pc);
    put(to + old, from, bytes, bytes + 1, pc);
}

char *strcat(char *destination, const char *source) {
    append(destination, source, length(source, SIZE_MAX), CALLER);
    return destination;
}

char *strncat(char *destination, const char *source, size_t size) {
    append(destination, source, length(source, size), CALLER);
    return destination;
}

char *strchr(const char *string, int character) {
    size_t at = 0;
    while (string[at] != (char)character && string[at] != '\0') ++at;
    reads(string, at + 1, CALLER);
    return string[at] == (char)character ? (char *)string + at : NULL;
}

char *strrchr(const char *string, int character) {
    const size_t bytes = length(string, SIZE_MAX) + 1;
    size_t at = bytes;
    while (at > 0 && string[at - 1] != (char)character) --at;
    reads(string, bytes, CALLER);
    return at > 0 ? (char *)string + at - 1 : NULL;
}

size_t strspn(const char *string, const char *accept) {
    return run_of(string, accept, true, CALLER);
}

size_t strcspn(const char *string, const char *reject) {
    return run_of(string, reject, false, CALLER);
}

char *strpbrk(const char *string, const char *accept) {
    const char *const at = string + run_of(string, accept, false, CALLER);
    return *at != '\0' ? (char *)at : NULL;
}

char *strstr(const char *haystack, const char *needle) {
    const size_t bytes = length(needle, SIZE_MAX), all = length(haystack, SIZE_MAX);
    reads(needle, bytes + 1, CALLER);
    reads(haystack, all + 1, CALLER);
    for (size_t at = 0; at + bytes <= all; ++at) {
        size_t same = 0;
        while (same < bytes && haystack[at + same] == needle[same]) ++same;
        if (same == bytes) return (char *)haystack + at;
    }
    return NULL;
}

/* The end of the token that begins here, which it terminates; NULL: it is the last. */
static char *cut(char *token, const char *delim, const void *pc) {
    char *const end = token + run_of(token, delim, false, pc);
    if (*end == '\0') return NULL;
    writes(end, 1, pc);
    *end = '\0';
    return end + 1;
}

char *strtok_r(char *str, const char *delim, char **saveptr) {
    char *token = str != NULL ? str : *saveptr;
    if (token == NULL) return NULL;
    token += run_of(token, delim, true, CALLER);
    *saveptr = *token != '\0' ? cut(token, delim, CALLER) : NULL;
    return *token != '\0' ? token : NULL;
}

char *strsep(char **stringp, const char *delim) {
    char *const token = *stringp;
    if (token != NULL) *stringp = cut(token, delim, CALLER);
    return token;
}

/* Move the letters from `first` to `first` + 25 by a distance. */
static void shift_case(char *string, char first, int by, const void *pc) {
    const size_t bytes = length(string, SIZE_MAX);
    reads(string, bytes + 1, pc);
    writes(string, bytes, pc);
    for (size_t i = 0; i < bytes; ++i)
        if (string[i] >= first && string[i] < first + 26) string[i] = (char)(string[i] + by);
}

char *strlwr(char *string) {
    shift_case(string, 'A', 'a' - 'A', CALLER);
    return string;
}

char *strupr(char *string) {
    shift_case(string, 'a', 'A' - 'a', CALLER);
    return string;
}

char *strrev(char *string) {
    const size_t bytes = length(string, SIZE_MAX);
    reads(string, bytes + 1, CALLER);
    writes(string, bytes, CALLER);
    for (size_t i = 0; i < bytes / 2; ++i) {
        const char c = string[i];
        string[i] = string[bytes - 1 - i];
        string[bytes - 1 - i] = c;
    }
    return string;
}
