// Merge of runs: the values of one entry after another, wherever they lie.

#include "merge_entry.h"

// Whether places begin ... end - 1 are, and lie among the values.
static bool has_places(const arl_merge_call *call, int64_t begin, int64_t end) {
  if (begin < 0 || end < begin || end > call->count) return false;
  uint32_t most = 0;
  for (int64_t k = begin; k < end; ++k) {
    const uint32_t place = (uint32_t)call->places[k];
    most = place > most ? place : most;
  }
  return begin == end || most < call->count;
}

// Add the sum of 1 << level terms to those of `added`.
ARL_INLINE void add_levels(float levels[LEVELS], int level, int64_t added, float sum) {
  for (; added >> level & 1; ++level) sum = levels[level] + sum;
  levels[level] = sum;
}

ARL_INLINE float merge_fp32(const arl_merge_call *call, arl_merge merge, const int32_t *places,
                            int64_t runs, float base) {
  float levels[LEVELS], total = 0;
  uint32_t weights = 0;
  int64_t run = 0;
  for (; run + BLOCK <= runs; run += BLOCK) {
    float sums[BLOCK];
    for (int k = 0; k < BLOCK; ++k)
      sums[k] = arl_weigh_fp32(call, merge, places[run + k], base, &weights);
    for (int width = BLOCK / 2; width > 0; width /= 2)
      for (int k = 0; k < width; ++k) sums[k] = sums[2 * k] + sums[2 * k + 1];
    add_levels(levels, BLOCK_LEVEL, run, sums[0]);
  }
  for (; run < runs; ++run)
    add_levels(levels, 0, run, arl_weigh_fp32(call, merge, places[run], base, &weights));
  for (int level = 0; runs >> level > 0; ++level)
    if (runs >> level & 1) total = levels[level] + total;
  return arl_move_fp32(base, total, weights);
}

ARL_INLINE int32_t merge_int32(const arl_merge_call *call, arl_merge merge, const int32_t *places,
                               int64_t runs, int32_t base) {
  uint32_t weights = 0;
  uint64_t products = 0;
  for (int64_t run = 0; run < runs; ++run)
    products += arl_weigh_int32(call, merge, places[run], &weights);
  return arl_move_int32(base, products, weights);
}

ARL_INLINE int merge_entries(const arl_merge_call *call, arl_merge merge, int64_t first,
                             int64_t last) {
  for (int64_t e = first; e < last; ++e) {
    const int64_t begin = call->begins[e], runs = call->ends[e] - begin;
    if (!has_places(call, begin, begin + runs)) return 1;
    // The plain mean of an entry has no base, but an entry without a run keeps its own.
    const bool has_base = merge != ARL_MEAN || runs == 0;
    const int32_t *places = call->places + begin;
    if (call->is_fp32) {
      const float base = has_base ? ((const float *)call->base)[e] : 0;
      ((float *)call->merged)[e] = merge_fp32(call, merge, places, runs, base);
    } else {
      const int32_t base = has_base ? ((const int32_t *)call->base)[e] : 0;
      ((int32_t *)call->merged)[e] = merge_int32(call, merge, places, runs, base);
    }
  }
  return 0;
}

int arl_merge_runs(const arl_merge_call *call, int64_t first, int64_t last) {
  // Constants, for which the loops are compiled anew.
  switch (call->merge) {
    case ARL_VISITS:
      return merge_entries(call, ARL_VISITS, first, last);
    case ARL_MEAN:
      return merge_entries(call, ARL_MEAN, first, last);
    case ARL_VISITED:
      return merge_entries(call, ARL_VISITED, first, last);
    case ARL_DAMPED:
      return merge_entries(call, ARL_DAMPED, first, last);
    default:
      return 0;
  }
}
