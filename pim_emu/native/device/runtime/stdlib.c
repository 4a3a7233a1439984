/* Numbers: of text, and their parts. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "runtime.h"

int abs(int x) { return x < 0 ? -x : x; }
long labs(long x) { return x < 0 ? -x : x; }
long long llabs(long long x) { return x < 0 ? -x : x; }

div_t div(int numerator, int denominator) {
    return (div_t){numerator / denominator, numerator % denominator};
}

ldiv_t ldiv(long numerator, long denominator) {
    return (ldiv_t){numerator / denominator, numerator % denominator};
}

/* In bases up to 36; 99: none. */
static int value_of(char c) {
    if (isdigit(c)) return c - '0';
    return isalpha(c) ? tolower(c) - 'a' + 10 : 99;
}

static bool hexadecimal_prefix(const char *text) {
    return text[0] == '0' && tolower(text[1]) == 'x' && isxdigit(text[2]);
}

/* The magnitude of a long, which may be that of LONG_MIN; what exceeds it sets errno. */
static unsigned long magnitude(const char **text, int base, unsigned long most, bool *any) {
    unsigned long value = 0;
    for (int digit; (digit = value_of(**text)) < base; ++*text) {
        *any = true;
        if (value > (most - (unsigned long)digit) / (unsigned long)base) {
            errno = ERANGE;
            value = most;
            while (value_of(**text) < base) ++*text;
            return value;
        }
        value = value * (unsigned long)base + (unsigned long)digit;
    }
    return value;
}

static long number(const char *text, char **end, int base, const void *pc) {
    const char *at = text;
    while (isspace(*at)) ++at;
    const bool negative = *at == '-';
    if (*at == '-' || *at == '+') ++at;
    if ((base == 0 || base == 16) && hexadecimal_prefix(at)) {
        at += 2;
        base = 16;
    }
    if (base == 0) base = *at == '0' ? 8 : 10;
    bool any = false;
    const unsigned long most = (unsigned long)LONG_MAX + negative;
    const unsigned long value = magnitude(&at, base, most, &any);
    if (!any) at = text;
    emu_count += COST_DIGITS((uint64_t)(at - text));
    report(text, (size_t)(at - text) + 1, EMU_READ, pc);
    if (end != NULL) *end = (char *)at;
    return (long)(negative ? -value : value);
}

long strtol(const char *text, char **end, int base) {
    if (base < 0 || base == 1 || base > 36) {
        errno = EINVAL;
        return 0;
    }
    return number(text, end, base, CALLER);
}

long atol(const char *text) { return number(text, NULL, 10, CALLER); }
int atoi(const char *text) { return (int)number(text, NULL, 10, CALLER); }
