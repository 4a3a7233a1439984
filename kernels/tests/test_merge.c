// Merges against their definition, in every compiled form, and through the handlers: with replicas,
// on a pool's threads, and wrong calls.

#include "merge_calls.h"
#include "merge_case.h"
#include "runs.h"
#include "stand_in.h"

XLA_FFI_Handler accel_rl_merge_fp32, accel_rl_merge_int32;

enum { MOST_DPUS = 70 };

static uint64_t state = 0x3E46Eull;
static stand_in_t stand_in;
static XLA_FFI_ExecutionContext context;

static merge_case make(arl_merge merge, bool is_fp32, int64_t replicas, int64_t dpus,
                       int64_t entries, bool shares) {
  merge_case x = {
      merge, is_fp32, replicas, dpus, entries, shares ? 1 : replicas, shares ? 1 : replicas,
      NULL,  NULL,    NULL,     NULL, NULL};
  const int64_t words = replicas * entries;
  x.tables = allocate_words(words * dpus);
  x.base = allocate_words(words);
  x.counts = allocate_words(x.visits * dpus * entries);
  x.alpha = allocate_words(x.alphas);
  x.merged = allocate_words(words);
  for (int64_t k = 0; k < words * dpus; ++k) x.tables[k] = draw_value(&state, is_fp32);
  for (int64_t k = 0; k < words; ++k) x.base[k] = draw_value(&state, is_fp32);
  for (int64_t k = 0; k < x.visits * dpus * entries; ++k) x.counts[k] = draw_visits(&state, dpus);
  for (int64_t k = 0; k < x.alphas; ++k) x.alpha[k] = draw_alpha(&state);
  for (int64_t k = 0; k < words; ++k) x.merged[k] = UNTOUCHED;
  return x;
}

static void release(merge_case *x) {
  free(x->tables), free(x->base), free(x->counts), free(x->alpha), free(x->merged);
}

static void check_merged(const merge_case *x, int64_t first, int64_t last, const char *form) {
  for (int64_t k = 0; k < x->replicas * x->entries; ++k) {
    const int64_t e = k % x->entries;
    const uint32_t want = e < first || e >= last ? UNTOUCHED : merge_wanted(x, k / x->entries, e);
    CHECK(x->merged[k] == want,
          "merge %d, fp32 %d, %lld DPUs, entry %lld of %lld in %s: %08x, not %08x", (int)x->merge,
          x->is_fp32, (long long)x->dpus, (long long)k, (long long)x->entries, form, x->merged[k],
          want);
  }
}

// The compiled forms, on a part of the entries.
static void test_forms(arl_merge merge, bool is_fp32, int64_t dpus, int64_t entries, int64_t first,
                       int64_t last) {
  merge_case x = make(merge, is_fp32, 1, dpus, entries, true);
  uint32_t weights[ARL_DAMPED_WEIGHTS];
  for (uint32_t n = 0; n < ARL_DAMPED_WEIGHTS; ++n)
    weights[n] = (uint32_t)damped_weight(*x.alpha, n);
  const arl_merge_call call = {.merge = merge,
                               .is_fp32 = is_fp32,
                               .count = dpus * entries,
                               .entries = entries,
                               .dpus = dpus,
                               .values = x.tables,
                               .base = x.base,
                               .visits = x.counts,
                               .weights = weights,
                               .merged = x.merged};
  for (int level = ARL_BASE; level <= (int)arl_best_level(); ++level) {
    for (int64_t k = 0; k < entries; ++k) x.merged[k] = UNTOUCHED;
    arl_choose_merge((arl_level)level)(&call, first, last);
    check_merged(&x, first, last, arl_level_name((arl_level)level));
  }
  release(&x);
}

// The handlers.

static call_t call_of(const merge_case *x) {
  const XLA_FFI_DataType entry = x->is_fp32 ? XLA_FFI_DataType_F32 : XLA_FFI_DataType_S32;
  const int64_t tables[] = {x->replicas, x->dpus, x->entries};
  const int64_t entries[] = {x->replicas, x->entries}, visits[] = {x->visits, x->dpus, x->entries};
  call_t call = {.context = &context};
  call_argument(&call, entry, x->tables, 3, tables);
  if (x->merge != ARL_MEAN) {
    call_argument(&call, entry, x->base, 2, entries);
    call_argument(&call, XLA_FFI_DataType_U32, x->counts, 3, visits);
    call_argument(&call, XLA_FFI_DataType_U32, x->alpha, 1, &x->alphas);
  }
  call_result(&call, entry, x->merged, 2, entries);
  call_attribute(&call, "merge", x->merge);
  return call;
}

static XLA_FFI_Handler *handler_of(const merge_case *x) {
  return x->is_fp32 ? accel_rl_merge_fp32 : accel_rl_merge_int32;
}

static void test_call(arl_merge merge, bool is_fp32, int64_t replicas, int64_t dpus,
                      int64_t entries, bool shares) {
  merge_case x = make(merge, is_fp32, replicas, dpus, entries, shares);
  call_t call = call_of(&x);
  const reply_t reply = call_flushing(&call, handler_of(&x));
  CHECK(reply.code == XLA_FFI_Error_Code_OK, "%s", reply.message);
  check_merged(&x, 0, entries, "a call");
  release(&x);
}

// (3 (8 - 4) + 1 (5 - 4)) / 4 = 3.25 from 4 on, and the half of -5, which rounds away from 0.
static void test_pinned(void) {
  uint32_t counts[] = {3, 1, 1, 1}, alpha = 0, merged[2];
  float tables[] = {8, 0, 5, -5}, base[] = {4, 0};
  int32_t integers[] = {8, 0, 5, -5}, start[] = {4, 0};
  merge_case x = {ARL_VISITS,       true,   1,      2,     2, 1, 1, (uint32_t *)tables,
                  (uint32_t *)base, counts, &alpha, merged};
  call_t call = call_of(&x);
  CHECK(call_make(&call, accel_rl_merge_fp32).code == XLA_FFI_Error_Code_OK, "fp32");
  CHECK(to_float(merged[0]) == 7.25f && to_float(merged[1]) == -2.5f, "%g and %g",
        to_float(merged[0]), to_float(merged[1]));
  x.is_fp32 = false;
  x.tables = (uint32_t *)integers;
  x.base = (uint32_t *)start;
  call = call_of(&x);
  CHECK(call_make(&call, accel_rl_merge_int32).code == XLA_FFI_Error_Code_OK, "int32");
  CHECK((int32_t)merged[0] == 7 && (int32_t)merged[1] == -3, "%d and %d", (int32_t)merged[0],
        (int32_t)merged[1]);
}

// Wrong calls.

static void test_refusals(arl_merge merge, bool is_fp32) {
  merge_case x = make(merge, is_fp32, 2, 3, 5, false);
  const call_t right = call_of(&x);
  XLA_FFI_Handler *handler = handler_of(&x);
  const int64_t result = right.num_arguments, words = x.replicas * x.entries;
  // The mean's tables have their number of DPUs to themselves.
  for (int64_t k = 0; k <= result; ++k)
    check_buffer(&right, handler, k, merge == ARL_MEAN && k == 0 ? 1 : -1);
  check_attributes(&right, handler);
  // More DPUs than the tree has levels for, of tables without entries.
  call_t wrong = right;
  for (int64_t k = 0; k <= result; ++k)
    if (k != 3 || merge == ARL_MEAN) wrong.dims[k][wrong.buffers[k].rank - 1] = 0;
  for (int64_t k = 0; k < result; k += 2) wrong.dims[k][1] = INT64_C(1) << 31;
  check_refused(&wrong, handler, XLA_FFI_Error_Code_INVALID_ARGUMENT, "number of DPUs", 0);
  for (int64_t k = 0; k < words; ++k)
    CHECK(x.merged[k] == UNTOUCHED, "entry %lld of a refused call is written", (long long)k);
  release(&x);
}

int main(void) {
  static const int64_t numbers[] = {1, 2, 3, 7, 8, 9, 16, 29, MOST_DPUS};
  stand_in_start(&stand_in, THREADS, 3);
  context.pool = stand_in_pool(&stand_in);
  for (int merge = 0; merge < ARL_MERGES; ++merge)
    for (int is_fp32 = 0; is_fp32 < 2; ++is_fp32) {
      for (size_t k = 0; k < sizeof numbers / sizeof *numbers; ++k)
        test_forms((arl_merge)merge, is_fp32, numbers[k], 90, 3, 87);
      test_forms((arl_merge)merge, is_fp32, 9, 1100, 0, 1100);
      for (int64_t replicas = 0; replicas <= 3; ++replicas)
        for (int shares = 0; shares < 2; ++shares) {
          test_call((arl_merge)merge, is_fp32, replicas, 5, 37, shares);
          test_call((arl_merge)merge, is_fp32, replicas, 0, 37, shares);
          test_call((arl_merge)merge, is_fp32, replicas, 5, 0, shares);
        }
      const int64_t before = stand_in.scheduled;
      test_call((arl_merge)merge, is_fp32, 2, 300, 170, true);
      CHECK(stand_in.scheduled > before, "all work stays on one thread");
      test_refusals((arl_merge)merge, is_fp32);
    }
  test_pinned();
  stand_in_stop(&stand_in);
  check_metadata(accel_rl_merge_fp32);
  check_metadata(accel_rl_merge_int32);
  CHECK(living_errors() == 0, "%lld errors left", (long long)living_errors());
  return finish();
}
