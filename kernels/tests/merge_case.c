#include "merge_case.h"

#include <math.h>
#include <string.h>

#include "check.h"

float to_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint32_t to_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

uint32_t draw_value(uint64_t *state, bool is_fp32) {
  const int64_t kind = random_between(state, 0, 5);
  if (is_fp32) {
    const float x = (float)random_between(state, -(1 << 24), 1 << 24);
    return to_bits(kind == 0 ? 0 * x : ldexpf(x, kind == 1 ? -149 : -14));
  }
  if (kind == 0) return (uint32_t)INT32_MAX;
  if (kind == 1) return -(uint32_t)INT32_MAX;
  return (uint32_t)random_between(state, -100000, 100000);
}

uint32_t draw_visits(uint64_t *state, int64_t count) {
  const int64_t kind = random_between(state, 0, 5);
  if (kind == 0) return (uint32_t)(MOST_WEIGHT / count);
  return kind < 3 ? 0 : (uint32_t)random_between(state, 0, kind == 3 ? 400 : 3);
}

uint32_t draw_alpha(uint64_t *state) {
  // With small ones the weights of 254 and 255 visits differ.
  return (uint32_t)random_between(state, 0, random_between(state, 0, 1) ? 32768 : 200);
}

uint32_t *allocate_words(int64_t count) { return must_allocate((size_t)count * sizeof(uint32_t)); }

int64_t damped_weight(uint32_t alpha, uint32_t visits) {
  int64_t rest = 32768;
  for (uint32_t n = 0; n < visits && n < 255; ++n) rest = (rest * (32768 - alpha) + 16384) >> 15;
  return 32768 - rest;
}

static int64_t weight_of(const merge_case *x, int64_t replica, int64_t dpu, int64_t e) {
  const int64_t from = x->visits > 1 ? replica : 0;
  const uint32_t visits = x->counts[(from * x->dpus + dpu) * x->entries + e];
  switch (x->merge) {
    case ARL_MEAN:
      return 1;
    case ARL_VISITED:
      return visits > 0;
    case ARL_DAMPED:
      return damped_weight(x->alpha[x->alphas > 1 ? replica : 0], visits);
    default:
      return visits;
  }
}

// The sum of `width` terms, a power of two, from `first` on; those beyond the last DPU's are 0.
static float sum_of(const merge_case *x, int64_t replica, int64_t e, float base, int64_t first,
                    int64_t width) {
  if (first >= x->dpus) return 0;
  if (width == 1) {
    const volatile float weight = (float)weight_of(x, replica, first, e);
    const uint32_t entry = x->tables[(replica * x->dpus + first) * x->entries + e];
    const volatile float difference = to_float(entry) - base, product = weight * difference;
    return product;
  }
  return sum_of(x, replica, e, base, first, width / 2) +
         sum_of(x, replica, e, base, first + width / 2, width / 2);
}

static uint32_t wanted_fp32(const merge_case *x, int64_t replica, int64_t e, uint32_t bits,
                            int64_t weights) {
  const float base = to_float(bits);
  int64_t width = 1;
  while (width < x->dpus) width *= 2;
  const volatile float share = 1 / (float)weights;
  const volatile float step = sum_of(x, replica, e, base, 0, width) * share;
  return to_bits(base + step);
}

// The merged entry lies between those of the tables, so it fits.
static uint32_t wanted_int32(const merge_case *x, int64_t replica, int64_t e, uint32_t bits,
                             int64_t weights) {
  const int64_t base = (int32_t)bits;
  int64_t sum = 0;
  for (int64_t d = 0; d < x->dpus; ++d) {
    const int64_t entry = (int32_t)x->tables[(replica * x->dpus + d) * x->entries + e];
    sum += weight_of(x, replica, d, e) * (entry - base);
  }
  const int64_t twice = 2 * (sum % weights), away = sum < 0 ? -1 : 1;
  return (uint32_t)(base + sum / weights + (llabs(twice) >= weights ? away : 0));
}

uint32_t merge_wanted(const merge_case *x, int64_t replica, int64_t e) {
  const uint32_t base = x->merge == ARL_MEAN ? 0 : x->base[replica * x->entries + e];
  int64_t weights = 0;
  for (int64_t d = 0; d < x->dpus; ++d) weights += weight_of(x, replica, d, e);
  if (weights == 0) return base;
  return x->is_fp32 ? wanted_fp32(x, replica, e, base, weights)
                    : wanted_int32(x, replica, e, base, weights);
}
