// What every native test needs: checks that say where and what, and numbers to draw cases from.

#ifndef ACCEL_RL_TESTS_CHECK_H
#define ACCEL_RL_TESTS_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_FAILURES = 10 };

static int64_t checks, failures;

// Check a condition; otherwise print it with what follows, which printf formats. One thread only.
#define CHECK(condition, ...)                                    \
  do {                                                           \
    ++checks;                                                    \
    if (!(condition)) {                                          \
      printf("%s:%d: not %s: ", __FILE__, __LINE__, #condition); \
      printf(__VA_ARGS__);                                       \
      printf("\n");                                              \
      if (++failures >= MOST_FAILURES) exit(1);                  \
    }                                                            \
  } while (0)

// The exit status of a test. One that checked nothing has failed.
static inline int finish(void) {
  printf("%lld checks, %lld failed\n", (long long)checks, (long long)failures);
  return failures > 0 || checks == 0;
}

// 64 pseudo-random bits (xorshift); the state must not be 0.
static inline uint64_t random_bits(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

// A number in [least, most].
static inline int64_t random_between(uint64_t *state, int64_t least, int64_t most) {
  return least + (int64_t)(random_bits(state) % (uint64_t)(most - least + 1));
}

// Memory that a test cannot do without, exactly as large as asked: sanitizers watch its ends.
static inline void *must_allocate(size_t bytes) {
  void *memory = malloc(bytes > 0 ? bytes : 1);
  if (!memory) abort();
  return memory;
}

#endif
