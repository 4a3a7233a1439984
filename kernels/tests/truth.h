// Tabular training once more, written from docs/tabular-semantics.md in the plainest way: the truth
// that tests compare kernels with. It shares no code with them. Entries and rates are doubles,
// which hold every value of every numerics exactly.

#ifndef ACCEL_RL_TESTS_TRUTH_H
#define ACCEL_RL_TESTS_TRUTH_H

#include <stdbool.h>
#include <stdint.h>

// Numbered as the attributes of the FFI handlers are.
enum { FP32 = 1, SCALED = 2, POW2 = 3 };
enum { Q_LEARNING, SARSA, SARSA_EPSILON_GREEDY, EXPECTED_SARSA, DOUBLE_Q_LEARNING, RULES };
enum { SEQ, STR, RAN, RAN_REPLACEMENT, ORDERS };

typedef struct {
  int64_t state, action, next_state, next_action;
  double reward;
  bool ends;  // discount is 0
} truth_row;

typedef struct {
  int numerics, rule, order;
  int64_t stride, block, states, actions;
  int64_t explore;  // epsilon in 1/65,536
  double alpha, gamma, epsilon;
} truth_program;

typedef struct {
  uint32_t seed, pass, dpu;
} truth_place;

// Arithmetic. Integer operands are whole numbers.
double truth_add(int numerics, double x, double y);
double truth_multiply(int numerics, double c, double x);
double truth_mean(int numerics, const double *values, int64_t count);

// x / n toward zero, and to the nearest with halves away from zero.
int64_t truth_truncated(int64_t x, int64_t n);
int64_t truth_nearest(int64_t x, int64_t n);

uint32_t truth_hash(uint64_t x);
uint32_t truth_stream(uint32_t seed, uint32_t pass, uint32_t dpu, uint32_t number);
uint32_t truth_draw(uint32_t *state);
int64_t truth_below(uint32_t draw, int64_t n);

// The rows of a pass over a chunk of `length`; `state` is the stream's before its first draw.
void truth_order(int order, int64_t stride, int64_t length, uint32_t state, int64_t *rows);

int64_t truth_tables(int rule);

// What the rule draws for one row: the table that learns, and the next action, or -1 for greedy.
typedef struct {
  int64_t learning, next_action;
} truth_choice;
truth_choice truth_choose(const truth_program *program, const truth_row *row, uint32_t *state);

// `table` is [K][S][A].
double truth_target(const truth_program *program, const truth_row *row, truth_choice choice,
                    const double *table);
double truth_move(const truth_program *program, double entry, double target);

// One pass over a chunk; adds to `visits`, [K][S][A], too.
void truth_pass(const truth_program *program, truth_place place, const truth_row *rows,
                int64_t length, double *table, uint32_t *visits);

// The 32 bits that hold an entry, and back.
uint32_t truth_bits(int numerics, double entry);
double truth_entry(int numerics, uint32_t bits);

#endif
