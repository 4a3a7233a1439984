/* Calls the string functions on two strings, and says what they return as offsets. */
#include <ctype.h>
#include <defs.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__host char a[64], b[64];
__host uint32_t n, letter;
__host char copies[12][192];
__host int64_t results[32];
__host uint32_t kinds[128];

static uint32_t bit(int is, int place) { return (uint32_t)(is != 0) << place; }
static int64_t sign(int x) { return (x > 0) - (x < 0); }
static int64_t place(const char *base, const char *found) { return found ? found - base : -1; }

int main(void) {
    int64_t *r = results;
    *r++ = (int64_t)strlen(a);
    *r++ = (int64_t)strnlen(a, n);
    *r++ = sign(strcmp(a, b));
    *r++ = sign(strncmp(a, b, n));
    *r++ = sign(memcmp(a, b, n));
    *r++ = place(a, memchr(a, (int)letter, n));
    *r++ = place(a, strchr(a, (int)letter));
    *r++ = place(a, strrchr(a, (int)letter));
    *r++ = (int64_t)strspn(a, b);
    *r++ = (int64_t)strcspn(a, b);
    *r++ = place(a, strpbrk(a, b));
    *r++ = place(a, strstr(a, b));
    *r++ = place(copies[0], stpcpy(copies[0], a));
    memset(copies[1], '#', 100);
    *r++ = place(copies[1], stpncpy(copies[1], a, n));
    strcpy(copies[2], a);
    strcat(copies[2], b);
    strcpy(copies[3], a);
    strncat(copies[3], b, n);
    memset(copies[4], '#', 100);
    strncpy(copies[4], a, n);
    strcpy(copies[5], a);
    strupr(copies[5]);
    strcpy(copies[6], a);
    strlwr(copies[6]);
    strcpy(copies[7], a);
    strrev(copies[7]);
    memcpy(copies[8], a, n);
    memcpy(copies[9], a, sizeof a);
    memmove(copies[9] + 3, copies[9], n);
    /* Tokens, each followed by a bar. */
    char text[64], *rest = text, *token;
    strcpy(text, a);
    while ((token = strsep(&rest, b)) != NULL) {
        strcat(copies[10], token);
        strcat(copies[10], "|");
    }
    strcpy(text, a);
    for (token = strtok_r(text, b, &rest); token != NULL; token = strtok_r(NULL, b, &rest)) {
        strcat(copies[11], token);
        strcat(copies[11], "|");
    }
    char *end;
    errno = 0;
    *r++ = strtol(a, &end, (int)n % 37 == 1 ? 0 : (int)n % 37);
    *r++ = end - a;
    *r++ = errno;
    *r++ = atoi(a);
    *r++ = atol(a);
    for (int c = 0; c < 128; ++c)
        kinds[c] = bit(isalnum(c), 0) | bit(isalpha(c), 1) | bit(isblank(c), 2) |
                   bit(iscntrl(c), 3) | bit(isdigit(c), 4) | bit(isgraph(c), 5) |
                   bit(islower(c), 6) | bit(isprint(c), 7) | bit(ispunct(c), 8) |
                   bit(isspace(c), 9) | bit(isupper(c), 10) | bit(isxdigit(c), 11) |
                   (uint32_t)tolower(c) << 12 | (uint32_t)toupper(c) << 20;
    return 0;
}
