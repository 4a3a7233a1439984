// Entries, rates and rows to make cases of.

#ifndef ACCEL_RL_TESTS_DRAWS_H
#define ACCEL_RL_TESTS_DRAWS_H

#include <string.h>

#include "check.h"
#include "truth.h"

// The entry nearest to x.
static inline double as_entry(int numerics, double x) {
  return truth_entry(numerics, truth_bits(numerics, x));
}

// An entry of a table. Of four kinds by turns: few, so that many are equal; moderate; large; the
// largest, beyond which POW2 saturates. Those of SCALED leave room for sums.
static inline double draw_entry(int numerics, uint64_t *state) {
  const int64_t most = numerics == POW2 ? INT32_MAX : 1 << 28;
  const double unit = numerics == FP32 ? 1.0 / 512 : 1;
  switch (random_bits(state) % 4) {
    case 0:
      if (numerics == FP32 && random_bits(state) % 4 == 0) return -0.0;
      return (double)random_between(state, -1, 1) * unit;
    case 1:
      return (double)random_between(state, -99999, 99999) * unit;
    case 2:
      return as_entry(numerics, (double)random_between(state, -most, most));
    default:
      return as_entry(numerics, (double)(random_bits(state) % 2 ? most : -most));
  }
}

// A rate in [0, 1], its ends among the likely ones.
static inline double draw_rate(int numerics, uint64_t *state) {
  const int64_t one = numerics == POW2 ? 256 : 10000;
  int64_t rate = random_between(state, -one / 8, one + one / 8);
  rate = rate < 0 ? 0 : rate > one ? one : rate;
  return numerics == FP32 ? as_entry(FP32, (double)rate / (double)one) : (double)rate;
}

// A row; its reward lets SCALED sum up hundreds.
static inline truth_row draw_row(int numerics, int64_t states, int64_t actions, uint64_t *state) {
  const double reward = numerics == SCALED ? (double)random_between(state, -499999, 499999)
                                           : draw_entry(numerics, state);
  return (truth_row){.state = random_between(state, 0, states - 1),
                     .action = random_between(state, 0, actions - 1),
                     .next_state = random_between(state, 0, states - 1),
                     .next_action = random_between(state, 0, actions - 1),
                     .reward = reward,
                     .ends = random_bits(state) % 8 == 0};
}

#endif
