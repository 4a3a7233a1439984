// Values of numerics.h from and to the doubles of truth.h.

#ifndef ACCEL_RL_TESTS_VALUES_H
#define ACCEL_RL_TESTS_VALUES_H

#include <stdlib.h>
#include <string.h>

#include "numerics.h"
#include "truth.h"

enum { LANES = sizeof(arl_value) / sizeof(arl_entry) };

static inline void set_lane(arl_value *value, int lane, double entry) {
  const uint32_t bits = truth_bits(ARL_NUMERICS, entry);
  memcpy((char *)value + lane * (int)sizeof bits, &bits, sizeof bits);
}

static inline double get_lane(const arl_value *value, int lane) {
  uint32_t bits;
  memcpy(&bits, (const char *)value + lane * (int)sizeof bits, sizeof bits);
  return truth_entry(ARL_NUMERICS, bits);
}

static inline arl_value *allocate_values(size_t count) {
  arl_value *values = aligned_alloc(64, (count * sizeof *values + 63) / 64 * 64);
  if (!values) abort();
  return values;
}

#endif
