// Right calls of the three handlers, to be made as they are or to be spoilt.

#ifndef ACCEL_RL_TESTS_EXAMPLE_H
#define ACCEL_RL_TESTS_EXAMPLE_H

#include "frames.h"
#include "scenario.h"

XLA_FFI_Handler accel_rl_tabular_launch, accel_rl_tabular_visits, accel_rl_tabular_examine;

typedef enum { LAUNCH, VISITS, EXAMINE, HANDLERS } handler_t;

// A handler's buffers, arguments and then one result: names as messages give them, and axes, by
// digits their sizes and by letters those that must agree.
typedef struct {
  XLA_FFI_Handler *handler;
  int64_t num_buffers;
  struct {
    const char *name, *shape;
  } buffers[MOST_BUFFERS];
} signature_t;

extern const signature_t signatures[HANDLERS];

typedef struct {
  handler_t which;
  scenario_t scenario;
  int64_t replicas;
  call_t call;
  double *table, *trained;    // [R][G][E] and [R][D][E], of a launch: before, and what should come
  uint32_t *visits;           // [D][E]
  uint32_t *inputs, *result;  // memory of the call's buffers
  int32_t verdict[4];
  uint32_t explore, seed, first_pass;
  size_t result_words;
} example_t;

void example_make(example_t *example, handler_t which, truth_program program, int64_t capacity,
                  const int32_t lengths[CHUNKS], int64_t replicas,
                  XLA_FFI_ExecutionContext *context, uint64_t *state);
void example_free(example_t *example);

// Make the call.
reply_t example_call(example_t *example);

// Overwrite the result, and whether it is as it was overwritten.
void example_mark(example_t *example);
bool example_is_marked(const example_t *example);

// Whether the result is what the handler should compute.
bool example_is_right(const example_t *example);

// A small program of one numerics and rule.
truth_program example_program(int numerics, int rule);

#endif
