// Merge of tables, compiled once for each instruction set. ARL_MERGE_ENTRIES names the function.
//
// A stripe of entries is merged at a time, over all tables: its sums stay in the cache, and the
// processor prefetches a stripe of a table. The compiler vectorises loops over a stripe, in which
// k counts. Blocks of tables are added in registers.

#include "merge_entry.h"

enum { STRIPE = 512 };

typedef struct {
  uint32_t weights[STRIPE];
  float base[STRIPE];
  float levels[LEVELS][STRIPE];
} fp32_sums;

ARL_INLINE float add_two(const arl_merge_call *call, arl_merge merge, int64_t at, float base,
                         uint32_t *weights) {
  const float sum = arl_weigh_fp32(call, merge, at, base, weights);
  return sum + arl_weigh_fp32(call, merge, at + call->entries, base, weights);
}

ARL_INLINE float add_four(const arl_merge_call *call, arl_merge merge, int64_t at, float base,
                          uint32_t *weights) {
  const float sum = add_two(call, merge, at, base, weights);
  return sum + add_two(call, merge, at + 2 * call->entries, base, weights);
}

ARL_INLINE float add_block(const arl_merge_call *call, arl_merge merge, int64_t at, float base,
                           uint32_t *weights) {
  const float sum = add_four(call, merge, at, base, weights);
  return sum + add_four(call, merge, at + 4 * call->entries, base, weights);
}

// Add the block of tables, or the one, whose first entry of the stripe is `at`, after `added`.
ARL_INLINE void add_fp32(const arl_merge_call *call, arl_merge merge, bool is_block, int64_t added,
                         int64_t at, int lanes, fp32_sums *restrict sums) {
  float sum[STRIPE];
  for (int k = 0; k < lanes; ++k) {
    const float base = sums->base[k];
    uint32_t weights = sums->weights[k];
    sum[k] = is_block ? add_block(call, merge, at + k, base, &weights)
                      : arl_weigh_fp32(call, merge, at + k, base, &weights);
    sums->weights[k] = weights;
  }
  int level = is_block ? BLOCK_LEVEL : 0;
  for (; added >> level & 1; ++level)
    for (int k = 0; k < lanes; ++k) sum[k] = sums->levels[level][k] + sum[k];
  for (int k = 0; k < lanes; ++k) sums->levels[level][k] = sum[k];
}

ARL_INLINE void merge_fp32(const arl_merge_call *call, arl_merge merge, int64_t first, int lanes) {
  const float *base = call->base;
  float *restrict merged = (float *)call->merged + first;
  const int64_t blocks = call->dpus / BLOCK * BLOCK;
  fp32_sums sums;
  for (int k = 0; k < lanes; ++k) {
    sums.weights[k] = 0;
    sums.base[k] = merge == ARL_MEAN ? 0 : base[first + k];
  }
  for (int64_t dpu = 0; dpu < blocks; dpu += BLOCK)
    add_fp32(call, merge, true, dpu, dpu * call->entries + first, lanes, &sums);
  for (int64_t dpu = blocks; dpu < call->dpus; ++dpu)
    add_fp32(call, merge, false, dpu, dpu * call->entries + first, lanes, &sums);
  float sum[STRIPE] = {0};
  for (int level = 0; level < LEVELS; ++level)
    if (call->dpus >> level & 1)
      for (int k = 0; k < lanes; ++k) sum[k] = sums.levels[level][k] + sum[k];
  for (int k = 0; k < lanes; ++k) merged[k] = arl_move_fp32(sums.base[k], sum[k], sums.weights[k]);
}

typedef struct {
  uint32_t weights[STRIPE];
  uint64_t products[STRIPE];  // in two's complement
} int32_sums;

// Add `count` tables, a constant, of which the first's entry of the stripe is `at`.
ARL_INLINE void add_int32(const arl_merge_call *call, arl_merge merge, int count, int64_t at,
                          int lanes, int32_sums *restrict sums) {
  for (int k = 0; k < lanes; ++k) {
    uint32_t weights = sums->weights[k];
    uint64_t products = sums->products[k];
#pragma GCC unroll 8
    for (int row = 0; row < count; ++row)
      products += arl_weigh_int32(call, merge, at + k + row * call->entries, &weights);
    sums->weights[k] = weights;
    sums->products[k] = products;
  }
}

ARL_INLINE void merge_int32(const arl_merge_call *call, arl_merge merge, int64_t first, int lanes) {
  const int32_t *base = call->base;
  int32_t *merged = (int32_t *)call->merged + first;
  const int64_t blocks = call->dpus / BLOCK * BLOCK;
  int32_sums sums;
  for (int k = 0; k < lanes; ++k) {
    sums.weights[k] = 0;
    sums.products[k] = 0;
  }
  for (int64_t dpu = 0; dpu < blocks; dpu += BLOCK)
    add_int32(call, merge, BLOCK, dpu * call->entries + first, lanes, &sums);
  for (int64_t dpu = blocks; dpu < call->dpus; ++dpu)
    add_int32(call, merge, 1, dpu * call->entries + first, lanes, &sums);
  for (int k = 0; k < lanes; ++k) {
    const int32_t start = merge == ARL_MEAN ? 0 : base[first + k];
    merged[k] = arl_move_int32(start, sums.products[k], sums.weights[k]);
  }
}

ARL_INLINE void merge_stripe(const arl_merge_call *call, arl_merge merge, int64_t first,
                             int lanes) {
  if (call->is_fp32)
    merge_fp32(call, merge, first, lanes);
  else
    merge_int32(call, merge, first, lanes);
}

arl_merge_entries ARL_MERGE_ENTRIES;

int ARL_MERGE_ENTRIES(const arl_merge_call *call, int64_t first, int64_t last) {
  for (int64_t at = first; at < last; at += STRIPE) {
    const int lanes = last - at < STRIPE ? (int)(last - at) : STRIPE;
    // Constants, for which the stripe is compiled anew.
    switch (call->merge) {
      case ARL_VISITS:
        merge_stripe(call, ARL_VISITS, at, lanes);
        break;
      case ARL_MEAN:
        merge_stripe(call, ARL_MEAN, at, lanes);
        break;
      case ARL_VISITED:
        merge_stripe(call, ARL_VISITED, at, lanes);
        break;
      case ARL_DAMPED:
        merge_stripe(call, ARL_DAMPED, at, lanes);
        break;
      default:
        break;
    }
  }
  return 0;
}
