// Tables to merge, and what their merge is by its definition.

#ifndef ACCEL_RL_TESTS_MERGE_CASE_H
#define ACCEL_RL_TESTS_MERGE_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "merge.h"

enum { MOST_WEIGHT = INT32_MAX };

static const uint32_t UNTOUCHED = 0xA5A5A5A5;

typedef struct {
  arl_merge merge;
  bool is_fp32;
  int64_t replicas, dpus, entries, visits, alphas;  // R, D, E, V and A
  uint32_t *tables, *base, *counts, *alpha;         // [R][D][E], [R][E], [V][D][E], [A]
  uint32_t *merged;                                 // [R][E]
} merge_case;

// A value: of ordinary size, subnormal or 0 in FP32, and also at the limits in INT32.
uint32_t draw_value(uint64_t *state, bool is_fp32);

// Visits of one of so many tables or runs: none, few, many, or its share of the most.
uint32_t draw_visits(uint64_t *state, int64_t count);

// A step size in 1/32,768.
uint32_t draw_alpha(uint64_t *state);

uint32_t *allocate_words(int64_t count);

int64_t damped_weight(uint32_t alpha, uint32_t visits);

// The merged entry, in bits.
uint32_t merge_wanted(const merge_case *x, int64_t replica, int64_t e);

float to_float(uint32_t bits);

#endif
