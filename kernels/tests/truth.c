#include "truth.h"

#include <stdlib.h>
#include <string.h>

static const int64_t LIMIT = INT64_C(2147483647);

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

int64_t truth_truncated(int64_t x, int64_t n) {
  const int64_t quotient = magnitude(x) / n;
  return x < 0 ? -quotient : quotient;
}

int64_t truth_nearest(int64_t x, int64_t n) {
  const int64_t quotient = (2 * magnitude(x) + n) / (2 * n);
  return x < 0 ? -quotient : quotient;
}

double truth_add(int numerics, double x, double y) {
  if (numerics == FP32) {
    volatile float sum = (float)x + (float)y;  // rounded to float before anything uses it
    return sum;
  }
  int64_t sum = (int64_t)x + (int64_t)y;
  if (numerics == POW2 && sum > LIMIT) sum = LIMIT;
  if (numerics == POW2 && sum < -LIMIT) sum = -LIMIT;
  return (double)sum;
}

double truth_multiply(int numerics, double c, double x) {
  if (numerics == FP32) {
    volatile float product = (float)c * (float)x;
    return product;
  }
  const int64_t product = (int64_t)c * (int64_t)x;
  return (double)(numerics == SCALED ? truth_truncated(product, 10000)
                                     : truth_nearest(product, 256));
}

double truth_mean(int numerics, const double *values, int64_t count) {
  if (numerics == FP32) {
    double total = values[0];
    for (int64_t a = 1; a < count; ++a) total = truth_add(FP32, total, values[a]);
    return truth_multiply(FP32, total, (float)(1.0 / (double)count));
  }
  int64_t whole = 0, rest = 0;
  for (int64_t a = 0; a < count; ++a) {
    const int64_t value = (int64_t)values[a], part = truth_truncated(value, count);
    whole += part;
    rest += value - part * count;
  }
  return (double)(whole +
                  (numerics == SCALED ? truth_truncated(rest, count) : truth_nearest(rest, count)));
}

static const uint64_t WORDS = UINT64_C(1) << 32;

uint32_t truth_hash(uint64_t x) {
  x = (x + 0x9E3779B9) % WORDS;
  x = (x ^ (x >> 16)) * 0x85EBCA6B % WORDS;
  x = (x ^ (x >> 13)) * 0xC2B2AE35 % WORDS;
  return (uint32_t)(x ^ (x >> 16));
}

uint32_t truth_stream(uint32_t seed, uint32_t pass, uint32_t dpu, uint32_t number) {
  const uint32_t words[] = {pass, dpu, number};
  uint32_t key = truth_hash(seed);
  for (int k = 0; k < 3; ++k) key = truth_hash(key ^ words[k]);
  return key;
}

uint32_t truth_draw(uint32_t *state) {
  return *state = (uint32_t)((UINT64_C(1664525) * *state + 1013904223) % WORDS);
}

int64_t truth_below(uint32_t draw, int64_t n) { return (int64_t)(draw >> 16) * n >> 16; }

static void shuffle(int64_t *values, int64_t count, uint32_t *state) {
  for (int64_t i = 0; i < count; ++i) values[i] = i;
  for (int64_t i = count - 1; i >= 1; --i) {
    const int64_t j = truth_below(truth_draw(state), i + 1), moved = values[i];
    values[i] = values[j];
    values[j] = moved;
  }
}

static void in_random_blocks(int64_t length, uint32_t state, int64_t *rows) {
  const int64_t count = (length + 127) / 128;
  int64_t within[128], *blocks = malloc((size_t)(count + 1) * sizeof *blocks), at = 0;
  if (!blocks) abort();
  shuffle(within, 128, &state);
  shuffle(blocks, count, &state);
  for (int64_t b = 0; b < count; ++b)
    for (int64_t i = 0; i < 128; ++i)
      if (blocks[b] * 128 + within[i] < length) rows[at++] = blocks[b] * 128 + within[i];
  free(blocks);
}

void truth_order(int order, int64_t stride, int64_t length, uint32_t state, int64_t *rows) {
  int64_t at = 0;
  if (order == SEQ) stride = 1;
  if (order == RAN) {
    in_random_blocks(length, state, rows);
  } else if (order == RAN_REPLACEMENT) {
    while (at < length)
      rows[at++] = (int64_t)((uint64_t)truth_draw(&state) * (uint64_t)length >> 32);
  } else {
    for (int64_t offset = 0; offset < stride && offset < length; ++offset)
      for (int64_t row = offset; row < length; row += stride) rows[at++] = row;
  }
}

int64_t truth_tables(int rule) { return rule == DOUBLE_Q_LEARNING ? 2 : 1; }

truth_choice truth_choose(const truth_program *program, const truth_row *row, uint32_t *state) {
  truth_choice choice = {0, row->next_action};
  if (program->rule != SARSA_EPSILON_GREEDY && program->rule != DOUBLE_Q_LEARNING) return choice;
  const uint32_t u = truth_draw(state), v = truth_draw(state);
  if (program->rule == DOUBLE_Q_LEARNING)
    choice.learning = u >> 31;
  else
    choice.next_action = u >> 16 < program->explore ? truth_below(v, program->actions) : -1;
  return choice;
}

static int64_t best_of(const double *values, int64_t count) {
  int64_t best = 0;
  for (int64_t a = 1; a < count; ++a)
    if (values[a] > values[best]) best = a;
  return best;
}

double truth_target(const truth_program *program, const truth_row *row, truth_choice choice,
                    const double *table) {
  if (row->ends) return row->reward;
  const int nx = program->numerics;
  const int64_t size = program->states * program->actions;
  const int64_t at = row->next_state * program->actions, other = (1 - choice.learning) * size;
  const double *own = table + choice.learning * size + at;
  const int64_t best = best_of(own, program->actions);
  double value = own[best];
  if (program->rule == SARSA || program->rule == SARSA_EPSILON_GREEDY) {
    if (choice.next_action >= 0) value = own[choice.next_action];
  } else if (program->rule == EXPECTED_SARSA) {
    const double mean = truth_mean(nx, own, program->actions);
    value = truth_add(nx, value, truth_multiply(nx, program->epsilon, truth_add(nx, mean, -value)));
  } else if (program->rule == DOUBLE_Q_LEARNING) {
    value = table[other + at + best];
  }
  return truth_add(nx, row->reward, truth_multiply(nx, program->gamma, value));
}

double truth_move(const truth_program *program, double entry, double target) {
  const int nx = program->numerics;
  return truth_add(nx, entry, truth_multiply(nx, program->alpha, truth_add(nx, target, -entry)));
}

void truth_pass(const truth_program *program, truth_place place, const truth_row *rows,
                int64_t length, double *table, uint32_t *visits) {
  int64_t *order = malloc((size_t)(length + 1) * sizeof *order), *entries;
  double *targets = malloc((size_t)(length + 1) * sizeof *targets);
  entries = malloc((size_t)(length + 1) * sizeof *entries);
  if (!order || !targets || !entries) abort();
  const uint32_t ordering = truth_stream(place.seed, place.pass, place.dpu, 1);
  uint32_t serving = truth_stream(place.seed, place.pass, place.dpu, 2);
  truth_order(program->order, program->stride, length, ordering, order);
  for (int64_t first = 0; first < length; first += program->block) {
    const int64_t last = first + program->block < length ? first + program->block : length;
    for (int64_t t = first; t < last; ++t) {
      const truth_row *row = rows + order[t];
      const truth_choice choice = truth_choose(program, row, &serving);
      targets[t] = truth_target(program, row, choice, table);
      entries[t] =
          (choice.learning * program->states + row->state) * program->actions + row->action;
    }
    for (int64_t t = first; t < last; ++t) {
      table[entries[t]] = truth_move(program, table[entries[t]], targets[t]);
      visits[entries[t]] += 1;
    }
  }
  free(order);
  free(targets);
  free(entries);
}

uint32_t truth_bits(int numerics, double entry) {
  uint32_t bits;
  const float real = (float)entry;
  const int32_t whole = numerics == FP32 ? 0 : (int32_t)entry;
  memcpy(&bits, numerics == FP32 ? (const void *)&real : (const void *)&whole, sizeof bits);
  return bits;
}

double truth_entry(int numerics, uint32_t bits) {
  float real;
  int32_t whole;
  memcpy(&real, &bits, sizeof bits);
  memcpy(&whole, &bits, sizeof bits);
  return numerics == FP32 ? (double)real : (double)whole;
}
