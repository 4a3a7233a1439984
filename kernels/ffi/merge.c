// XLA FFI handlers of merges; accel_rl/pim/merge_native.py calls them.

#include "merge.h"

#include "float_mode.h"
#include "frame.h"
#include "runs.h"

#define ARL_EXPORT __attribute__((visibility("default")))

#define S32 XLA_FFI_DataType_S32
#define U32 XLA_FFI_DataType_U32
#define F32 XLA_FFI_DataType_F32

// Below this many entries of all tables a call is not worth another thread's while.
enum { SMALL = 1 << 15 };

// Threads share lines of 16 entries, which those of a replica are cut into.
enum { LINE = 16 };

enum { DAMPED_ONE = 32768 };

typedef struct {
  arl_merge_call first;  // of the first replica
  arl_merge_entries *merge;
  int64_t replicas;        // R
  int64_t visits, alphas;  // 1, or R where each replica has its own
  const uint32_t *alpha;   // in 1/32,768
} merge_work;

static int64_t lines_of(const merge_work *work) { return (work->first.entries + LINE - 1) / LINE; }

// Fill `weights` with 1 - (1 - alpha)**n for n visits.
static void damp(uint32_t alpha, uint32_t weights[ARL_DAMPED_WEIGHTS]) {
  uint32_t rest = DAMPED_ONE;
  for (int n = 0; n < ARL_DAMPED_WEIGHTS; ++n) {
    weights[n] = DAMPED_ONE - rest;
    rest = (rest * (DAMPED_ONE - alpha) + DAMPED_ONE / 2) / DAMPED_ONE;
  }
}

static int merge_lines(const merge_work *work, int64_t replica, int64_t first, int64_t last) {
  arl_merge_call call = work->first;
  const int64_t entries = call.entries;
  uint32_t weights[ARL_DAMPED_WEIGHTS];
  call.values = (const uint32_t *)call.values + replica * call.count;
  call.merged = (uint32_t *)call.merged + replica * entries;
  if (call.base) call.base = (const uint32_t *)call.base + replica * entries;
  if (work->visits > 1) call.visits += replica * call.count;
  if (call.merge == ARL_DAMPED) {
    damp(work->alpha[work->alphas > 1 ? replica : 0], weights);
    call.weights = weights;
  }
  const int64_t end = last * LINE < entries ? last * LINE : entries;
  return work->merge(&call, first * LINE, end);
}

static int merge_part(void *argument, int64_t first, int64_t last) {
  const merge_work *work = argument;
  const int64_t lines = lines_of(work);
  const arl_float_mode mode = arl_keep_subnormals();
  int fault = 0;
  for (int64_t at = first; at < last && !fault;) {
    const int64_t replica = at / lines, start = replica * lines;
    const int64_t end = start + lines < last ? start + lines : last;
    fault = merge_lines(work, replica, at - start, end - start);
    at = end;
  }
  arl_restore_float_mode(mode);
  return fault;
}

static int64_t grain_of(const arl_pool *pool, int64_t items, double updates) {
  if ((double)items * updates < SMALL) return items > 0 ? items : 1;
  const int64_t enough = (int64_t)(SMALL / 2 / updates) + 1;
  const int64_t fair = items / (2 * (pool->num_threads(pool->context) + 1)) + 1;
  return enough < fair ? fair : enough;
}

// Returns 0, or what a thread found wrong.
static int share(XLA_FFI_CallFrame *frame, merge_work *work) {
  const arl_pool pool = arl_pool_of(frame);
  const int64_t lines = lines_of(work), items = work->replicas * lines;
  const double updates = (double)work->first.count / (double)(lines > 0 ? lines : 1);
  return arl_share(&pool, items, grain_of(&pool, items, updates), merge_part, work);
}

// Merges of tables.

static XLA_FFI_Error *check_sizes(const XLA_FFI_CallFrame *frame, const merge_work *work) {
  const XLA_FFI_Error_Code invalid = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  const int64_t replicas = work->replicas,
                sizes[] = {replicas, work->first.dpus, work->first.entries};
  for (int k = 0; k < 3; ++k)
    if (sizes[k] > INT32_MAX)
      return arl_fail(frame, invalid, "tables must have at most %d in axis %d, got %lld", INT32_MAX,
                      k, (long long)sizes[k]);
  if (work->visits != 1 && work->visits != replicas)
    return arl_fail(frame, invalid, "visits must be of 1 or of %lld replicas, got %lld",
                    (long long)replicas, (long long)work->visits);
  if (work->alphas != 1 && work->alphas != replicas)
    return arl_fail(frame, invalid, "alpha must be of 1 or of %lld replicas, got %lld",
                    (long long)replicas, (long long)work->alphas);
  return NULL;
}

static XLA_FFI_Error *merge_call(XLA_FFI_CallFrame *frame, XLA_FFI_DataType entry) {
  if (arl_answer_metadata(frame)) return NULL;
  static const arl_attribute attributes[] = {{"merge", ARL_VISITS, ARL_MERGES - 1}};
  int64_t merge;
  XLA_FFI_Error *error = arl_read_attributes(frame, attributes, 1, &merge);
  if (error) return error;
  // The mean takes tables only.
  const arl_buffer mean[] = {{"tables", entry, "RDE"}, {"merged", entry, "RE"}};
  const arl_buffer weighted[] = {{"tables", entry, "RDE"},
                                 {"base", entry, "RE"},
                                 {"visits", U32, "VDE"},
                                 {"alpha", U32, "A"},
                                 {"merged", entry, "RE"}};
  const int64_t num_arguments = merge == ARL_MEAN ? 1 : 4;
  void *data[5] = {0};
  arl_sizes sizes;
  error =
      arl_read_buffers(frame, merge == ARL_MEAN ? mean : weighted, num_arguments, 1, data, &sizes);
  if (error) return error;
  merge_work work = {.first = {.merge = (arl_merge)merge,
                               .is_fp32 = entry == F32,
                               .dpus = sizes.of['D'],
                               .entries = sizes.of['E'],
                               .values = data[0],
                               .merged = data[num_arguments]},
                     .merge = arl_choose_merge(arl_best_level()),
                     .replicas = sizes.of['R'],
                     .visits = 1,
                     .alphas = 1};
  if (merge != ARL_MEAN) {
    work.first.base = data[1];
    work.first.visits = data[2];
    work.alpha = data[3];
    work.visits = sizes.of['V'];
    work.alphas = sizes.of['A'];
  }
  error = check_sizes(frame, &work);
  if (error) return error;
  work.first.count = work.first.dpus * work.first.entries;
  share(frame, &work);
  return NULL;
}

ARL_EXPORT XLA_FFI_Error *accel_rl_merge_fp32(XLA_FFI_CallFrame *frame) {
  return merge_call(frame, F32);
}

ARL_EXPORT XLA_FFI_Error *accel_rl_merge_int32(XLA_FFI_CallFrame *frame) {
  return merge_call(frame, S32);
}

// Merges of runs.

static XLA_FFI_Error *merge_runs_call(XLA_FFI_CallFrame *frame, XLA_FFI_DataType entry) {
  if (arl_answer_metadata(frame)) return NULL;
  static const arl_attribute attributes[] = {{"merge", ARL_VISITS, ARL_MERGES - 1}};
  int64_t merge;
  XLA_FFI_Error *error = arl_read_attributes(frame, attributes, 1, &merge);
  if (error) return error;
  const arl_buffer buffers[] = {
      {"places", S32, "G"},    {"begins", S32, "E"},
      {"ends", S32, "E"},      {"visits", U32, merge == ARL_MEAN ? "0" : "G"},
      {"values", entry, "RG"}, {"base", entry, "RE"},
      {"alpha", U32, "R"},     {"merged", entry, "RE"}};
  void *data[8];
  arl_sizes sizes;
  error = arl_read_buffers(frame, buffers, 7, 1, data, &sizes);
  if (error) return error;
  const int64_t count = sizes.of['G'];
  if (count > INT32_MAX)
    return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT, "runs must be at most %d, got %lld",
                    INT32_MAX, (long long)count);
  merge_work work = {.first = {.merge = (arl_merge)merge,
                               .is_fp32 = entry == F32,
                               .count = count,
                               .entries = sizes.of['E'],
                               .places = data[0],
                               .begins = data[1],
                               .ends = data[2],
                               .visits = data[3],
                               .values = data[4],
                               .base = data[5],
                               .merged = data[7]},
                     .merge = arl_merge_runs,
                     .replicas = sizes.of['R'],
                     .visits = 1,
                     .alphas = sizes.of['R'],
                     .alpha = data[6]};
  if (!share(frame, &work)) return NULL;
  return arl_fail(frame, XLA_FFI_Error_Code_OUT_OF_RANGE,
                  "places of runs, and where those of an entry begin and end, must be among %lld",
                  (long long)count);
}

ARL_EXPORT XLA_FFI_Error *accel_rl_merge_runs_fp32(XLA_FFI_CallFrame *frame) {
  return merge_runs_call(frame, F32);
}

ARL_EXPORT XLA_FFI_Error *accel_rl_merge_runs_int32(XLA_FFI_CallFrame *frame) {
  return merge_runs_call(frame, S32);
}
