// Launches by owner to test with, and what should come of them, worked out one row at a time.

#ifndef ACCEL_RL_TESTS_OWNED_CASE_H
#define ACCEL_RL_TESTS_OWNED_CASE_H

#include <stdbool.h>

#include "owned.h"
#include "truth.h"

enum { OWNED_ACTIONS = 3, OWNED_STATES = 5 };

typedef struct {
  int numerics;
  arl_choice choice;
  bool rotates;
  int64_t chunks, most_rows, lanes, replicas;  // rows of the longest chunk
  int64_t run;                                 // rows of a run, on average
  uint32_t passes;
} owned_shape;

// Entries as bits; all memory is exactly as large as the launch says.
typedef struct {
  owned_shape shape;
  uint32_t *records, *dpus, *starts, *values, *alpha, *runs, *expected;
  uint32_t *visits;  // [D][K][S]
  int32_t *lengths, *slots;
  int64_t results;  // entries of `runs` and of `expected`
  arl_owned launch;
} owned_case;

void owned_draw(owned_case *drawn, owned_shape shape, uint64_t *state);
void owned_free(owned_case *drawn);

#endif
