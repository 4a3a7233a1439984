// Merges against their definition, in every compiled form, and through the handlers: with replicas,
// on a pool's threads, and wrong calls.

#include <math.h>
#include <string.h>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "check.h"
#include "frames.h"
#include "runs.h"
#include "stand_in.h"

XLA_FFI_Handler accel_rl_merge_fp32, accel_rl_merge_int32;

enum { MOST_DPUS = 70, MOST_WEIGHT = (1 << 30) - 1, GUARD = 16 };

static const uint32_t UNTOUCHED = 0xA5A5A5A5;

static uint64_t state = 0x3E46Eull;
static stand_in_t stand_in;
static XLA_FFI_ExecutionContext context;

typedef struct {
  arl_merge merge;
  bool is_fp32;
  int64_t replicas, dpus, entries, visits, alphas;  // R, D, E, V and A
  uint32_t *tables, *base, *counts, *alpha;         // [R][D][E], [R][E], [V][D][E], [A]
  uint32_t *merged;                                 // [R][E]
} example_t;

static float to_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint32_t to_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

// An entry: of ordinary size, subnormal or 0 in FP32, and also at the limits in INT32.
static uint32_t draw_entry(bool is_fp32) {
  const int64_t kind = random_between(&state, 0, 5);
  if (is_fp32) {
    const float x = (float)random_between(&state, -(1 << 24), 1 << 24);
    return to_bits(kind == 0 ? 0 * x : ldexpf(x, kind == 1 ? -149 : -14));
  }
  if (kind == 0) return (uint32_t)INT32_MAX;
  if (kind == 1) return -(uint32_t)INT32_MAX;
  return (uint32_t)random_between(&state, -100000, 100000);
}

static uint32_t draw_visits(int64_t dpus) {
  const int64_t kind = random_between(&state, 0, 5);
  if (kind == 0) return (uint32_t)(MOST_WEIGHT / dpus);
  return kind < 3 ? 0 : (uint32_t)random_between(&state, 0, kind == 3 ? 400 : 3);
}

static uint32_t *allocate_words(int64_t count) {
  return must_allocate((size_t)count * sizeof(uint32_t));
}

static example_t make(arl_merge merge, bool is_fp32, int64_t replicas, int64_t dpus,
                      int64_t entries, bool shares) {
  example_t x = {
      merge, is_fp32, replicas, dpus, entries, shares ? 1 : replicas, shares ? 1 : replicas,
      NULL,  NULL,    NULL,     NULL, NULL};
  const int64_t words = replicas * entries;
  x.tables = allocate_words(words * dpus);
  x.base = allocate_words(words);
  x.counts = allocate_words(x.visits * dpus * entries);
  x.alpha = allocate_words(x.alphas);
  x.merged = allocate_words(words);
  for (int64_t k = 0; k < words * dpus; ++k) x.tables[k] = draw_entry(is_fp32);
  for (int64_t k = 0; k < words; ++k) x.base[k] = draw_entry(is_fp32);
  for (int64_t k = 0; k < x.visits * dpus * entries; ++k) x.counts[k] = draw_visits(dpus);
  // With small ones the weights of 254 and 255 visits differ.
  for (int64_t k = 0; k < x.alphas; ++k)
    x.alpha[k] = (uint32_t)random_between(&state, 0, random_between(&state, 0, 1) ? 32768 : 200);
  for (int64_t k = 0; k < words; ++k) x.merged[k] = UNTOUCHED;
  return x;
}

static void release(example_t *x) {
  free(x->tables), free(x->base), free(x->counts), free(x->alpha), free(x->merged);
}

// The definition.

static int64_t damped_weight(uint32_t alpha, uint32_t visits) {
  int64_t rest = 32768;
  for (uint32_t n = 0; n < visits && n < 255; ++n) rest = (rest * (32768 - alpha) + 16384) >> 15;
  return 32768 - rest;
}

static int64_t weight_of(const example_t *x, int64_t replica, int64_t dpu, int64_t e) {
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
static float sum_of(const example_t *x, int64_t replica, int64_t e, float base, int64_t first,
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

static uint32_t wanted_fp32(const example_t *x, int64_t replica, int64_t e, uint32_t bits,
                            int64_t weights) {
  const float base = to_float(bits);
  int64_t width = 1;
  while (width < x->dpus) width *= 2;
  const volatile float share = 1 / (float)weights;
  const volatile float step = sum_of(x, replica, e, base, 0, width) * share;
  return to_bits(base + step);
}

// The merged entry lies between those of the tables, so it fits.
static uint32_t wanted_int32(const example_t *x, int64_t replica, int64_t e, uint32_t bits,
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

static uint32_t wanted(const example_t *x, int64_t replica, int64_t e) {
  const uint32_t base = x->merge == ARL_MEAN ? 0 : x->base[replica * x->entries + e];
  int64_t weights = 0;
  for (int64_t d = 0; d < x->dpus; ++d) weights += weight_of(x, replica, d, e);
  if (weights == 0) return base;
  return x->is_fp32 ? wanted_fp32(x, replica, e, base, weights)
                    : wanted_int32(x, replica, e, base, weights);
}

static void check_merged(const example_t *x, int64_t first, int64_t last, const char *form) {
  for (int64_t k = 0; k < x->replicas * x->entries; ++k) {
    const int64_t e = k % x->entries;
    const uint32_t want = e < first || e >= last ? UNTOUCHED : wanted(x, k / x->entries, e);
    CHECK(x->merged[k] == want,
          "merge %d, fp32 %d, %lld DPUs, entry %lld of %lld in %s: %08x, not %08x", (int)x->merge,
          x->is_fp32, (long long)x->dpus, (long long)k, (long long)x->entries, form, x->merged[k],
          want);
  }
}

// The compiled forms, on a part of the entries.
static void test_forms(arl_merge merge, bool is_fp32, int64_t dpus, int64_t entries, int64_t first,
                       int64_t last) {
  example_t x = make(merge, is_fp32, 1, dpus, entries, true);
  uint32_t weights[ARL_DAMPED_WEIGHTS];
  for (uint32_t n = 0; n < ARL_DAMPED_WEIGHTS; ++n)
    weights[n] = (uint32_t)damped_weight(*x.alpha, n);
  const arl_merge_call call = {merge,  is_fp32,  dpus,    entries, x.tables,
                               x.base, x.counts, weights, x.merged};
  for (int level = ARL_BASE; level <= (int)arl_best_level(); ++level) {
    for (int64_t k = 0; k < entries; ++k) x.merged[k] = UNTOUCHED;
    arl_choose_merge((arl_level)level)(&call, first, last);
    check_merged(&x, first, last, arl_level_name((arl_level)level));
  }
  release(&x);
}

// The handlers.

static call_t call_of(const example_t *x) {
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

static XLA_FFI_Handler *handler_of(const example_t *x) {
  return x->is_fp32 ? accel_rl_merge_fp32 : accel_rl_merge_int32;
}

// Make a call as XLA's threads do: in a mode that flushes subnormal floats to zero, which must be
// the mode after it too. The lowest six bits only tell of what was computed.
static reply_t call_flushing(call_t *call, XLA_FFI_Handler *handler) {
#ifdef __SSE__
  const unsigned mode = _mm_getcsr() & ~0x3Fu, flushing = mode | 0x8040;
  _mm_setcsr(flushing);
  const reply_t reply = call_make(call, handler);
  const unsigned left = _mm_getcsr() & ~0x3Fu;
  _mm_setcsr(mode);
  CHECK(left == flushing, "the call leaves the mode %x, not %x", left, flushing);
  return reply;
#else
  return call_make(call, handler);
#endif
}

static void test_call(arl_merge merge, bool is_fp32, int64_t replicas, int64_t dpus,
                      int64_t entries, bool shares) {
  example_t x = make(merge, is_fp32, replicas, dpus, entries, shares);
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
  example_t x = {ARL_VISITS,       true,   1,      2,     2, 1, 1, (uint32_t *)tables,
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

static void refuse(const example_t *x, const call_t *wrong, const char *what, int64_t k) {
  call_t call = *wrong;
  const reply_t reply = call_make(&call, handler_of(x));
  CHECK(reply.code == XLA_FFI_Error_Code_INVALID_ARGUMENT && reply.message[0],
        "merge %d, %s of buffer %lld: code %d: %s", (int)x->merge, what, (long long)k,
        (int)reply.code, reply.message);
  for (int64_t i = 0; i < x->replicas * x->entries; ++i)
    CHECK(x->merged[i] == UNTOUCHED, "%s of buffer %lld: the result is written", what,
          (long long)k);
}

static void test_buffer(const example_t *x, const call_t *right, int64_t k) {
  for (int dtype = 0; dtype <= 33; ++dtype) {
    call_t wrong = *right;
    wrong.buffers[k].dtype = (XLA_FFI_DataType)dtype;
    if (wrong.buffers[k].dtype != right->buffers[k].dtype) refuse(x, &wrong, "data type", k);
  }
  for (int64_t rank = 0; rank <= MOST_AXES; ++rank) {
    call_t wrong = *right;
    wrong.buffers[k].rank = rank;
    if (rank != right->buffers[k].rank) refuse(x, &wrong, "rank", k);
  }
  for (int64_t axis = 0; axis < right->buffers[k].rank; ++axis) {
    // The mean's tables have their number of DPUs to themselves.
    if (x->merge == ARL_MEAN && k == 0 && axis == 1) continue;
    const int64_t sizes[] = {0, right->dims[k][axis] + 1, INT64_MAX};
    for (int i = 0; i < 3; ++i) {
      call_t wrong = *right;
      wrong.dims[k][axis] = sizes[i];
      refuse(x, &wrong, "size", k);
    }
  }
}

static void test_refusals(arl_merge merge, bool is_fp32) {
  example_t x = make(merge, is_fp32, 2, 3, 5, false);
  const call_t right = call_of(&x);
  const int64_t result = right.num_arguments;
  for (int64_t k = 0; k <= result; ++k) test_buffer(&x, &right, k);
  for (int64_t more = -1; more <= 1; more += 2) {
    call_t wrong = right;
    wrong.num_arguments += more;
    refuse(&x, &wrong, "number", result);
    wrong = right;
    wrong.num_results += more;
    refuse(&x, &wrong, "number", result);
  }
  const int64_t merges[] = {-1, ARL_MERGES, INT64_MIN, INT64_MAX};
  for (int k = 0; k < 4; ++k) {
    call_t wrong = right;
    wrong.values[0] = merges[k];
    refuse(&x, &wrong, "merge", -1);
  }
  call_t wrong = right;
  wrong.num_attributes = 0;
  refuse(&x, &wrong, "absence of the merge", -1);
  // More DPUs than the tree has levels for, of tables without entries.
  wrong = right;
  for (int64_t k = 0; k <= result; ++k)
    if (k != 3 || merge == ARL_MEAN) wrong.dims[k][wrong.buffers[k].rank - 1] = 0;
  for (int64_t k = 0; k < result; k += 2) wrong.dims[k][1] = INT64_C(1) << 31;
  refuse(&x, &wrong, "number of DPUs", 0);
  release(&x);
}

static void test_metadata(XLA_FFI_Handler *handler) {
  XLA_FFI_Metadata metadata = {.struct_size = XLA_FFI_Metadata_STRUCT_SIZE, .traits = 99};
  XLA_FFI_Metadata_Extension extension = {
      .extension_base = {XLA_FFI_Metadata_Extension_STRUCT_SIZE, XLA_FFI_Extension_Metadata, NULL},
      .metadata = &metadata,
  };
  XLA_FFI_CallFrame frame = {.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE,
                             .extension_start = &extension.extension_base};
  CHECK(handler(&frame) == NULL && metadata.traits == 0, "traits %u", metadata.traits);
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
  test_metadata(accel_rl_merge_fp32);
  test_metadata(accel_rl_merge_int32);
  CHECK(living_errors() == 0, "%lld errors left", (long long)living_errors());
  return finish();
}
