// Merges of runs against the merge of tables of one entry each, through the handlers: with
// replicas, on a pool's threads, and wrong calls.

#include "merge_calls.h"
#include "merge_case.h"
#include "stand_in.h"

XLA_FFI_Handler accel_rl_merge_runs_fp32, accel_rl_merge_runs_int32;

enum { PLACES, BEGINS, ENDS, VISITS, VALUES, BASE, ALPHA, MERGED, SPARE = 5 };

static uint64_t state = 0x9A27ull;
static stand_in_t stand_in;
static XLA_FFI_ExecutionContext context;

typedef struct {
  arl_merge merge;
  bool is_fp32;
  int64_t replicas, runs, entries;  // R, G and E
  uint32_t *data[MERGED + 1];       // [G], [E], [E], [G], [R][G], [R][E], [R], [R][E]
} runs_case;

// Entries of up to `most` runs at places in any order, of which some are no entry's.
static runs_case make(arl_merge merge, bool is_fp32, int64_t replicas, int64_t entries,
                      int64_t most) {
  runs_case x = {.merge = merge, .is_fp32 = is_fp32, .replicas = replicas, .entries = entries};
  uint32_t *begins = x.data[BEGINS] = allocate_words(entries);
  uint32_t *ends = x.data[ENDS] = allocate_words(entries);
  for (int64_t e = 0; e < entries; ++e) {
    begins[e] = (uint32_t)x.runs;
    x.runs += random_between(&state, 0, 3) ? random_between(&state, 0, most) : 0;
    ends[e] = (uint32_t)x.runs;
  }
  x.runs += SPARE;
  uint32_t *places = x.data[PLACES] = allocate_words(x.runs);
  for (int64_t k = 0; k < x.runs; ++k) {
    const int64_t other = random_between(&state, 0, k);
    places[k] = places[other];
    places[other] = (uint32_t)k;
  }
  x.data[VISITS] = allocate_words(x.runs);
  x.data[VALUES] = allocate_words(replicas * x.runs);
  x.data[BASE] = allocate_words(replicas * entries);
  x.data[ALPHA] = allocate_words(replicas);
  x.data[MERGED] = allocate_words(replicas * entries);
  for (int64_t k = 0; k < x.runs; ++k) x.data[VISITS][k] = draw_visits(&state, most);
  for (int64_t k = 0; k < replicas * x.runs; ++k) x.data[VALUES][k] = draw_value(&state, is_fp32);
  for (int64_t k = 0; k < replicas * entries; ++k) x.data[BASE][k] = draw_value(&state, is_fp32);
  for (int64_t k = 0; k < replicas; ++k) x.data[ALPHA][k] = draw_alpha(&state);
  for (int64_t k = 0; k < replicas * entries; ++k) x.data[MERGED][k] = UNTOUCHED;
  return x;
}

static void release(runs_case *x) {
  for (int k = 0; k <= MERGED; ++k) free(x->data[k]);
}

// The merge of as many tables of one entry as the entry has runs.
static uint32_t wanted(const runs_case *x, int64_t replica, int64_t e) {
  const int64_t begin = x->data[BEGINS][e], runs = x->data[ENDS][e] - begin;
  uint32_t *base = x->data[BASE] + replica * x->entries + e;
  if (runs == 0) return *base;
  uint32_t *values = allocate_words(runs), *visits = allocate_words(runs);
  for (int64_t k = 0; k < runs; ++k) {
    const uint32_t place = x->data[PLACES][begin + k];
    values[k] = x->data[VALUES][replica * x->runs + place];
    visits[k] = x->data[VISITS][place];
  }
  const merge_case one = {.merge = x->merge,
                          .is_fp32 = x->is_fp32,
                          .replicas = 1,
                          .dpus = runs,
                          .entries = 1,
                          .visits = 1,
                          .alphas = 1,
                          .tables = values,
                          .base = base,
                          .counts = visits,
                          .alpha = x->data[ALPHA] + replica};
  const uint32_t merged = merge_wanted(&one, 0, 0);
  free(values), free(visits);
  return merged;
}

static call_t call_of(const runs_case *x) {
  const XLA_FFI_DataType entry = x->is_fp32 ? XLA_FFI_DataType_F32 : XLA_FFI_DataType_S32;
  const int64_t values[] = {x->replicas, x->runs}, entries[] = {x->replicas, x->entries};
  const int64_t visits = x->merge == ARL_MEAN ? 0 : x->runs;
  call_t call = {.context = &context};
  call_argument(&call, XLA_FFI_DataType_S32, x->data[PLACES], 1, &x->runs);
  call_argument(&call, XLA_FFI_DataType_S32, x->data[BEGINS], 1, &x->entries);
  call_argument(&call, XLA_FFI_DataType_S32, x->data[ENDS], 1, &x->entries);
  call_argument(&call, XLA_FFI_DataType_U32, x->data[VISITS], 1, &visits);
  call_argument(&call, entry, x->data[VALUES], 2, values);
  call_argument(&call, entry, x->data[BASE], 2, entries);
  call_argument(&call, XLA_FFI_DataType_U32, x->data[ALPHA], 1, &x->replicas);
  call_result(&call, entry, x->data[MERGED], 2, entries);
  call_attribute(&call, "merge", x->merge);
  return call;
}

static XLA_FFI_Handler *handler_of(const runs_case *x) {
  return x->is_fp32 ? accel_rl_merge_runs_fp32 : accel_rl_merge_runs_int32;
}

static void test_call(arl_merge merge, bool is_fp32, int64_t replicas, int64_t entries,
                      int64_t most) {
  runs_case x = make(merge, is_fp32, replicas, entries, most);
  call_t call = call_of(&x);
  const reply_t reply = call_flushing(&call, handler_of(&x));
  CHECK(reply.code == XLA_FFI_Error_Code_OK, "%s", reply.message);
  for (int64_t k = 0; k < replicas * entries; ++k) {
    const uint32_t want = wanted(&x, k / entries, k % entries), found = x.data[MERGED][k];
    CHECK(found == want, "merge %d, fp32 %d, up to %lld runs, entry %lld of %lld: %08x, not %08x",
          (int)merge, is_fp32, (long long)most, (long long)k, (long long)entries, found, want);
  }
  release(&x);
}

// Wrong calls.

static void test_refusals(arl_merge merge, bool is_fp32) {
  runs_case x = make(merge, is_fp32, 2, 5, 4);
  const call_t right = call_of(&x);
  XLA_FFI_Handler *handler = handler_of(&x);
  for (int64_t k = 0; k <= MERGED; ++k) check_buffer(&right, handler, k, -1);
  check_attributes(&right, handler);
  // More runs than places can tell apart, of no replica.
  call_t wrong = right;
  wrong.dims[PLACES][0] = wrong.dims[VALUES][1] = INT64_C(1) << 31;
  if (merge != ARL_MEAN) wrong.dims[VISITS][0] = INT64_C(1) << 31;
  wrong.dims[VALUES][0] = wrong.dims[BASE][0] = wrong.dims[ALPHA][0] = wrong.dims[MERGED][0] = 0;
  check_refused(&wrong, handler, XLA_FFI_Error_Code_INVALID_ARGUMENT, "number of runs", PLACES);
  for (int64_t k = 0; k < x.replicas * x.entries; ++k)
    CHECK(x.data[MERGED][k] == UNTOUCHED, "entry %lld of a refused call is written", (long long)k);
  release(&x);
}

// Runs that are not among the values.
static void test_places(arl_merge merge, bool is_fp32) {
  runs_case x = make(merge, is_fp32, 1, 3, 20);
  const uint32_t runs = (uint32_t)x.runs;
  uint32_t *const begin = x.data[BEGINS] + 1, *const end = x.data[ENDS] + 1;
  uint32_t *const place = x.data[PLACES] + 1;
  *begin = 0;
  *end = 3;
  const call_t right = call_of(&x);
  uint32_t *const spoiled[] = {place, place, begin, begin, end, end, end};
  const uint32_t values[] = {runs, UINT32_MAX, UINT32_MAX, 4, runs + 1, UINT32_MAX, INT32_MAX};
  for (int k = 0; k < 7; ++k) {
    const uint32_t kept = *spoiled[k];
    *spoiled[k] = values[k];
    check_refused(&right, handler_of(&x), XLA_FFI_Error_Code_OUT_OF_RANGE, "place", k);
    *spoiled[k] = kept;
  }
  call_t call = right;
  CHECK(call_make(&call, handler_of(&x)).code == XLA_FFI_Error_Code_OK, "the right call");
  release(&x);
}

int main(void) {
  static const int64_t most[] = {1, 3, 8, 9, 40, 200};
  stand_in_start(&stand_in, THREADS, 3);
  context.pool = stand_in_pool(&stand_in);
  for (int merge = 0; merge < ARL_MERGES; ++merge)
    for (int is_fp32 = 0; is_fp32 < 2; ++is_fp32) {
      for (size_t k = 0; k < sizeof most / sizeof *most; ++k)
        test_call((arl_merge)merge, is_fp32, 1, 37, most[k]);
      for (int64_t replicas = 0; replicas <= 3; ++replicas) {
        test_call((arl_merge)merge, is_fp32, replicas, 21, 6);
        test_call((arl_merge)merge, is_fp32, replicas, 0, 6);
      }
      const int64_t before = stand_in.scheduled;
      test_call((arl_merge)merge, is_fp32, 2, 400, 150);
      CHECK(stand_in.scheduled > before, "all work stays on one thread");
      test_refusals((arl_merge)merge, is_fp32);
      test_places((arl_merge)merge, is_fp32);
    }
  stand_in_stop(&stand_in);
  check_metadata(accel_rl_merge_runs_fp32);
  check_metadata(accel_rl_merge_runs_int32);
  CHECK(living_errors() == 0, "%lld errors left", (long long)living_errors());
  return finish();
}
