// XLA FFI handlers of tabular training; accel_rl/tabular/passes/native.py calls them.

#include <string.h>

#define ARL_NUMERICS ARL_FP32  // only for names that do not depend on it
#include "block.h"
#include "float_mode.h"
#include "runs.h"
#include "tabular.h"

#define S32 XLA_FFI_DataType_S32
#define U32 XLA_FFI_DataType_U32
#define F32 XLA_FFI_DataType_F32

// Below this many row updates a call is not worth another thread's while.
enum { SMALL = 1 << 14 };

static const int64_t MOST = INT32_MAX;

int64_t arl_grain(const arl_pool *pool, int64_t items, double rows) {
  if ((double)items * rows < SMALL) return items > 0 ? items : 1;
  int64_t enough = (int64_t)(SMALL / 2 / rows) + 1;
  int64_t fair = items / (4 * (pool->num_threads(pool->context) + 1)) + 1;
  return enough < fair ? fair : enough;
}

static XLA_FFI_Error *no_memory(const XLA_FFI_CallFrame *frame) {
  return arl_fail(frame, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED,
                  "tabular kernel: no memory for a thread's tables");
}

// Examine: whether every length and every index lies in range. Its verdict is data, not an error,
// because an error on one device would leave the others waiting for it; launch and visits turn a
// bad verdict, which is the same on all devices, into the error.

enum { VERDICT_DPU, VERDICT_FAULT, VERDICT_ROW, VERDICT_VALUE };
enum { SOUND, BAD_LENGTH, BAD_ENTRY, BAD_NEXT_ENTRY, BAD_NEXT_ACTION };

typedef struct {
  const arl_wide_row *rows;
  const int32_t *lengths;
  int64_t capacity;
  uint32_t size, actions;
} examine_work;

static int fault_of(const examine_work *work, const arl_wide_row *row) {
  if (row->entry >= work->size) return BAD_ENTRY;
  if (row->next_entry > work->size - work->actions) return BAD_NEXT_ENTRY;
  return (row->meta & ARL_NEXT_ACTION_MASK) >= work->actions ? BAD_NEXT_ACTION : SOUND;
}

static int examine_part(void *argument, int64_t first, int64_t last) {
  const examine_work *work = argument;
  int faults = 0;
  for (int64_t d = first; d < last; ++d) {
    if (work->lengths[d] < 0 || work->lengths[d] > work->capacity) return 1;
    for (int64_t t = 0; t < work->lengths[d]; ++t)
      faults |= fault_of(work, work->rows + d * work->capacity + t);
  }
  return faults;
}

static int32_t value_of(const arl_wide_row *row, int fault) {
  if (fault == BAD_NEXT_ACTION) return (int32_t)(row->meta & ARL_NEXT_ACTION_MASK);
  return (int32_t)(fault == BAD_ENTRY ? row->entry : row->next_entry);
}

// The first fault, where there is one.
static void find_fault(const examine_work *work, int64_t chunks, const uint32_t *dpus,
                       int32_t *verdict) {
  for (int64_t d = 0; d < chunks; ++d) {
    const int32_t dpu = (int32_t)dpus[d], length = work->lengths[d];
    if (length < 0 || length > work->capacity) {
      memcpy(verdict, (int32_t[4]){dpu, BAD_LENGTH, 0, length}, 4 * sizeof *verdict);
      return;
    }
    for (int32_t t = 0; t < length; ++t) {
      const arl_wide_row *row = work->rows + d * work->capacity + t;
      const int fault = fault_of(work, row);
      if (!fault) continue;
      memcpy(verdict, (int32_t[4]){dpu, fault, t, value_of(row, fault)}, 4 * sizeof *verdict);
      return;
    }
  }
}

ARL_EXPORT XLA_FFI_Error *accel_rl_tabular_examine(XLA_FFI_CallFrame *frame) {
  if (arl_answer_metadata(frame)) return NULL;
  static const arl_attribute attributes[] = {{"num_actions", 1, 65536}, {"size", 1, INT32_MAX}};
  int64_t values[2];
  XLA_FFI_Error *error = arl_read_attributes(frame, attributes, 2, values);
  if (error) return error;
  if (values[1] % values[0])
    return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                    "attribute size must be a multiple of num_actions, %lld, got %lld",
                    (long long)values[0], (long long)values[1]);
  static const arl_buffer buffers[] = {
      {"rows", S32, "DT4"}, {"lengths", S32, "D"}, {"dpus", U32, "D"}, {"verdict", S32, "14"}};
  void *data[4];
  arl_sizes sizes;
  error = arl_read_buffers(frame, buffers, 3, 1, data, &sizes);
  if (error) return error;
  const int64_t chunks = sizes.of['D'];
  examine_work work = {data[0], data[1], sizes.of['T'], (uint32_t)values[1], (uint32_t)values[0]};
  const arl_pool pool = arl_pool_of(frame);
  memset(data[3], 0, 4 * sizeof(int32_t));
  if (arl_share(&pool, chunks, arl_grain(&pool, chunks, (double)work.capacity), examine_part,
                &work))
    find_fault(&work, chunks, data[2], data[3]);
  return NULL;
}

XLA_FFI_Error *arl_check_verdict(const XLA_FFI_CallFrame *frame, const int32_t *verdict,
                                 int64_t capacity, uint32_t size, uint32_t actions) {
  const char *names[] = {"", "", "s * A + a", "s' * A", "a'"};
  const uint32_t limits[] = {0, 0, size, size - actions + 1, actions};
  const int32_t fault = verdict[VERDICT_FAULT], value = verdict[VERDICT_VALUE];
  if (fault == SOUND) return NULL;
  if (fault == BAD_LENGTH)
    return arl_fail(frame, XLA_FFI_Error_Code_OUT_OF_RANGE,
                    "length of chunk %d must be in [0, %lld], got %d", verdict[VERDICT_DPU],
                    (long long)capacity, value);
  if (fault < SOUND || fault > BAD_NEXT_ACTION)
    return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT, "unknown verdict %d", fault);
  return arl_fail(frame, XLA_FFI_Error_Code_OUT_OF_RANGE,
                  "row %d of chunk %d: %s must be in [0, %u), got %d", verdict[VERDICT_ROW],
                  verdict[VERDICT_DPU], names[fault], limits[fault], value);
}

XLA_FFI_Error *arl_check_lengths(const XLA_FFI_CallFrame *frame, const int32_t *lengths,
                                 int64_t chunks, int64_t capacity) {
  for (int64_t d = 0; d < chunks; ++d)
    if (lengths[d] < 0 || lengths[d] > capacity)
      return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                      "lengths[%lld] must be in [0, %lld], got %d", (long long)d,
                      (long long)capacity, lengths[d]);
  return NULL;
}

// What launch and visits share: attributes of the program, and lengths that fit the rows.
enum { RULE, ORDER, STRIDE, BLOCK, ACTIONS, PASSES, PROGRAM_ATTRIBUTES };
// clang-format off: the entries of a list, which braces alone are not
#define PROGRAM                                                                           \
  {"rule", 0, ARL_RULES - 1}, {"order", ARL_SEQ, ARL_RAN_REPLACEMENT}, {"stride", 1, MOST}, \
      {"target_block", 1, MOST}, {"num_actions", 1, 65536}, {"num_passes", 0, MOST}
// clang-format on

static XLA_FFI_Error *set_program(const XLA_FFI_CallFrame *frame, const int64_t *values,
                                  const int32_t *verdict, const arl_sizes *sizes,
                                  arl_launch *launch) {
  const XLA_FFI_Error_Code invalid = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  const int64_t tables = arl_tables((arl_rule)values[RULE]);
  launch->rule = (int32_t)values[RULE];
  launch->order = (int32_t)values[ORDER];
  launch->stride = (uint32_t)values[STRIDE];
  launch->block = (uint32_t)values[BLOCK];
  launch->actions = (uint32_t)values[ACTIONS];
  launch->num_passes = (uint32_t)values[PASSES];
  launch->chunks = sizes->of['D'];
  launch->capacity = sizes->of['T'];
  launch->entries = sizes->of['E'];
  launch->size = (uint32_t)(launch->entries / tables);
  if (launch->entries < 1 || launch->entries > MOST || launch->entries % (tables * launch->actions))
    return arl_fail(frame, invalid, "tables must hold %lld times S times %u entries, got %lld",
                    (long long)tables, launch->actions, (long long)launch->entries);
  const int64_t limit =
      launch->order == ARL_RAN ? (int64_t)ARL_MAX_RANDOM_BLOCKS * ARL_RANDOM_BLOCK : MOST;
  if (launch->capacity > limit)
    return arl_fail(frame, invalid, "a chunk must have at most %lld rows, got %lld",
                    (long long)limit, (long long)launch->capacity);
  XLA_FFI_Error *error =
      arl_check_verdict(frame, verdict, launch->capacity, launch->size, launch->actions);
  return error ? error
               : arl_check_lengths(frame, launch->lengths, launch->chunks, launch->capacity);
}

// Launch.

typedef struct {
  const arl_launch *launch;
  arl_run *run;
} run_work;

static int run_part(void *argument, int64_t first, int64_t last) {
  const run_work *work = argument;
  const arl_float_mode mode = arl_keep_subnormals();
  const int status = work->run(work->launch, first, last);
  arl_restore_float_mode(mode);
  return status;
}

ARL_EXPORT XLA_FFI_Error *accel_rl_tabular_launch(XLA_FFI_CallFrame *frame) {
  if (arl_answer_metadata(frame)) return NULL;
  static const arl_attribute attributes[] = {PROGRAM, {"numerics", ARL_FP32, ARL_INT32_POW2}};
  int64_t values[PROGRAM_ATTRIBUTES + 1];
  XLA_FFI_Error *error = arl_read_attributes(frame, attributes, PROGRAM_ATTRIBUTES + 1, values);
  if (error) return error;
  const int64_t numerics = values[PROGRAM_ATTRIBUTES];
  const XLA_FFI_DataType entry = numerics == ARL_FP32 ? F32 : S32;
  const arl_buffer buffers[] = {
      {"rows", S32, "DT4"},     {"lengths", S32, "D"},   {"dpus", U32, "D"},
      {"verdict", S32, "14"},   {"table", entry, "RGE"}, {"rates", entry, "3R"},
      {"explore", U32, ""},     {"seed", U32, ""},       {"first_pass", U32, ""},
      {"tables", entry, "RDE"},
  };
  void *data[10];
  arl_sizes sizes;
  error = arl_read_buffers(frame, buffers, 9, 1, data, &sizes);
  if (error) return error;
  arl_launch launch = {
      .rows = data[0],
      .lengths = data[1],
      .dpus = data[2],
      .table = data[4],
      .rates = data[5],
      .explore = *(const uint32_t *)data[6],
      .seed = *(const uint32_t *)data[7],
      .first_pass = *(const uint32_t *)data[8],
      .tables = data[9],
      .replicas = sizes.of['R'],
      .starts = sizes.of['G'],
  };
  if (launch.starts != 1 && launch.starts != sizes.of['D'])
    return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                    "table must be one, or one for each of %lld chunks, got %lld",
                    (long long)sizes.of['D'], (long long)launch.starts);
  error = set_program(frame, values, data[3], &sizes, &launch);
  if (error) return error;
  const arl_pool pool = arl_pool_of(frame);
  const int64_t tiles = arl_tiles(&launch), items = launch.chunks * tiles;
  const int64_t lanes = launch.replicas < ARL_TILE ? launch.replicas : ARL_TILE;
  const double rows =
      ((double)launch.capacity * launch.num_passes + (double)launch.entries / 8) * (double)lanes;
  run_work work = {&launch, arl_choose(numerics, launch.replicas, arl_best_level())};
  return arl_share(&pool, items, arl_grain(&pool, items, rows), run_part, &work) ? no_memory(frame)
                                                                                 : NULL;
}

// Visits.

typedef struct {
  const arl_launch *launch;
  uint32_t *counts;
} visits_work;

static int visits_part(void *argument, int64_t first, int64_t last) {
  const visits_work *work = argument;
  return arl_visits(work->launch, work->counts, first, last);
}

ARL_EXPORT XLA_FFI_Error *accel_rl_tabular_visits(XLA_FFI_CallFrame *frame) {
  if (arl_answer_metadata(frame)) return NULL;
  static const arl_attribute attributes[] = {PROGRAM};
  int64_t values[PROGRAM_ATTRIBUTES];
  XLA_FFI_Error *error = arl_read_attributes(frame, attributes, PROGRAM_ATTRIBUTES, values);
  if (error) return error;
  static const arl_buffer buffers[] = {
      {"rows", S32, "DT4"}, {"lengths", S32, "D"},   {"dpus", U32, "D"},    {"verdict", S32, "14"},
      {"seed", U32, ""},    {"first_pass", U32, ""}, {"counts", U32, "DE"},
  };
  void *data[7];
  arl_sizes sizes;
  error = arl_read_buffers(frame, buffers, 6, 1, data, &sizes);
  if (error) return error;
  arl_launch launch = {
      .rows = data[0],
      .lengths = data[1],
      .dpus = data[2],
      .seed = *(const uint32_t *)data[4],
      .first_pass = *(const uint32_t *)data[5],
  };
  error = set_program(frame, values, data[3], &sizes, &launch);
  if (error) return error;
  const arl_pool pool = arl_pool_of(frame);
  const double rows = (double)launch.capacity * launch.num_passes + (double)launch.entries / 8;
  visits_work work = {&launch, data[6]};
  return arl_share(&pool, launch.chunks, arl_grain(&pool, launch.chunks, rows), visits_part, &work)
             ? no_memory(frame)
             : NULL;
}

// For the loader: the interface that the handlers were built against, and the instruction set.

// Raise with every change of targets, operands, attributes or enums.
enum { ARL_INTERFACE = 7 };

ARL_EXPORT int accel_rl_interface(void) { return ARL_INTERFACE; }

ARL_EXPORT int accel_rl_ffi_version(void) { return XLA_FFI_API_MAJOR * 1000 + XLA_FFI_API_MINOR; }

ARL_EXPORT const char *accel_rl_instruction_set(void) { return arl_level_name(arl_best_level()); }
