// What one entry takes to merge, from the tables of all DPUs or from its runs.

#ifndef ACCEL_RL_FFI_MERGE_ENTRY_H
#define ACCEL_RL_FFI_MERGE_ENTRY_H

#include "merge.h"

// Sanitized builds inline nothing.
#ifndef ARL_INLINE
#define ARL_INLINE static inline __attribute__((always_inline))
#endif

// FP32 sums are a tree of adjacent terms: blocks are added in registers, and of a tree's levels one
// holds the sum of 1 << k terms where bit k of the number of added terms is set. The tree is padded
// with zeros, but adding a zero to a partial sum can only change the sign of a sum of 0, which the
// merged entry does not show.
enum { BLOCK = 8, BLOCK_LEVEL = 3, LEVELS = 32 };

ARL_INLINE uint32_t arl_least(uint32_t x, uint32_t y) { return x < y ? x : y; }

// The weight of value `at`.
ARL_INLINE uint32_t arl_weigh(const arl_merge_call *call, arl_merge merge, int64_t at) {
  const uint32_t visits = merge == ARL_MEAN ? 1 : call->visits[at];
  if (merge == ARL_VISITED) return arl_least(visits, 1);
  // Signed, for gather instructions.
  if (merge == ARL_DAMPED) return call->weights[(int32_t)arl_least(visits, ARL_DAMPED_WEIGHTS - 1)];
  return visits;
}

// The weighted change of value `at`, whose weight is added to `weights`.
ARL_INLINE float arl_weigh_fp32(const arl_merge_call *call, arl_merge merge, int64_t at, float base,
                                uint32_t *weights) {
  const uint32_t weight = arl_weigh(call, merge, at);
  *weights += weight;
  return (float)weight * (((const float *)call->values)[at] - base);
}

// The merged entry, of the sum of weighted changes; base where the weights are 0.
ARL_INLINE float arl_move_fp32(float base, float sum, uint32_t weights) {
  const float share = 1 / (float)(weights > 0 ? weights : 1);
  const float moved = base + sum * share;
  return weights > 0 ? moved : base;
}

// INT32: the sum of weight * (value - base) is that of weight * value, less base times all weights.
// Weights sum to less than 2**31, so that both and their difference fit 64 bits.

// The weighted value `at`, in two's complement; its weight is added to `weights`.
ARL_INLINE uint64_t arl_weigh_int32(const arl_merge_call *call, arl_merge merge, int64_t at,
                                    uint32_t *weights) {
  const uint32_t weight = arl_weigh(call, merge, at);
  *weights += weight;
  return (uint64_t)((int64_t)(int32_t)weight * ((const int32_t *)call->values)[at]);
}

// x / divisor, to the nearest, halves away from zero; both as 64 bits in two's complement.
ARL_INLINE uint64_t arl_divide_rounded(uint64_t x, uint64_t divisor) {
  const bool is_negative = x >> 63;
  const uint64_t magnitude = is_negative ? -x : x, rest = magnitude % divisor;
  const uint64_t quotient = magnitude / divisor + (rest >= divisor - rest);
  return is_negative ? -quotient : quotient;
}

// The merged entry, of the sum of weighted values; base where the weights are 0.
ARL_INLINE int32_t arl_move_int32(int32_t base, uint64_t products, uint64_t weights) {
  const uint64_t start = (uint64_t)(int64_t)base, sum = products - start * weights;
  const uint64_t step = weights > 0 ? arl_divide_rounded(sum, weights) : 0;
  return (int32_t)(uint32_t)(start + step);
}

#endif
