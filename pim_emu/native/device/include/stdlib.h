/* Numbers from text, and the end of a tasklet. There is no malloc: see alloc.h. */
#ifndef DPU_STDLIB_H
#define DPU_STDLIB_H

#include <limits.h>
#include <stddef.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX INT_MAX

typedef struct {
    int quot, rem;
} div_t;
typedef struct {
    long quot, rem;
} ldiv_t;

int abs(int x);
long labs(long x);
long long llabs(long long x);
div_t div(int numerator, int denominator);
ldiv_t ldiv(long numerator, long denominator);

int atoi(const char *text);
long atol(const char *text);
long strtol(const char *text, char **end, int base);

__attribute__((noreturn)) void exit(int status);  /* of the calling tasklet */
__attribute__((noreturn)) void abort(void);       /* stops the DPU with a fault */

#endif
