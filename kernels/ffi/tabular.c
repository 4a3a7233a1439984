// XLA FFI handlers of tabular training; accel_rl/tabular/passes/native.py calls them.

#include <string.h>

#define ARL_NUMERICS ARL_FP32  // only for names that do not depend on it
#include "block.h"
#include "frame.h"
#include "runs.h"

#define ARL_EXPORT __attribute__((visibility("default")))

#define S32 XLA_FFI_DataType_S32
#define U32 XLA_FFI_DataType_U32
#define F32 XLA_FFI_DataType_F32

// Below this many row updates a call is not worth another thread's while.
enum { SMALL = 1 << 14 };

static const int64_t MOST = INT32_MAX;

// How many items a thread takes at a time, of `rows` row updates each.
static int64_t grain_of(const arl_pool *pool, int64_t items, int64_t rows) {
  if (items * rows < SMALL) return items > 0 ? items : 1;
  int64_t enough = rows > 0 ? SMALL / 2 / rows + 1 : items;
  int64_t fair = items / (4 * (pool->num_threads(pool->context) + 1)) + 1;
  return enough < fair ? fair : enough;
}

static XLA_FFI_Error *no_memory(const XLA_FFI_CallFrame *frame) {
  return arl_fail(frame, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED,
                  "tabular kernel: no memory for a thread's tables");
}

// What launch and visits share: attributes of the program, and lengths that fit the rows.
enum { RULE, ORDER, STRIDE, BLOCK, ACTIONS, PASSES, PROGRAM_ATTRIBUTES };
#define PROGRAM                                                                           \
  {"rule", 0, ARL_RULES - 1}, {"order", ARL_SEQ, ARL_RAN_REPLACEMENT}, {"stride", 1, MOST}, \
      {"target_block", 1, MOST}, {"num_actions", 1, 65536}, {"num_passes", 0, MOST}

static XLA_FFI_Error *set_program(const XLA_FFI_CallFrame *frame, const int64_t *values,
                                  const arl_sizes *sizes, arl_launch *launch) {
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
  if (launch->entries > MOST || launch->entries % (tables * launch->actions))
    return arl_fail(frame, invalid, "tables must hold %lld times S times %u entries, got %lld",
                    (long long)tables, launch->actions, (long long)launch->entries);
  const int64_t limit =
      launch->order == ARL_RAN ? (int64_t)ARL_MAX_RANDOM_BLOCKS * ARL_RANDOM_BLOCK : MOST;
  if (launch->capacity > limit)
    return arl_fail(frame, invalid, "a chunk must have at most %lld rows, got %lld",
                    (long long)limit, (long long)launch->capacity);
  for (int64_t d = 0; d < launch->chunks; ++d)
    if (launch->lengths[d] < 0 || launch->lengths[d] > launch->capacity)
      return arl_fail(frame, invalid, "lengths[%lld] must be in [0, %lld], got %d", (long long)d,
                      (long long)launch->capacity, launch->lengths[d]);
  return NULL;
}

// Launch.

typedef struct {
  const arl_launch *launch;
  arl_run *run;
} run_work;

static int run_part(void *argument, int64_t first, int64_t last) {
  const run_work *work = argument;
  return work->run(work->launch, first, last);
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
      {"rows", S32, "DT4"},   {"lengths", S32, "D"}, {"dpus", U32, "D"},
      {"table", entry, "RE"}, {"rates", entry, "3R"}, {"explore", U32, ""},
      {"seed", U32, ""},      {"first_pass", U32, ""}, {"tables", entry, "RDE"},
  };
  void *data[9];
  arl_sizes sizes;
  error = arl_read_buffers(frame, buffers, 8, 1, data, &sizes);
  if (error) return error;
  arl_launch launch = {
      .rows = data[0],
      .lengths = data[1],
      .dpus = data[2],
      .table = data[3],
      .rates = data[4],
      .explore = *(const uint32_t *)data[5],
      .seed = *(const uint32_t *)data[6],
      .first_pass = *(const uint32_t *)data[7],
      .tables = data[8],
      .replicas = sizes.of['R'],
  };
  error = set_program(frame, values, &sizes, &launch);
  if (error) return error;
  const arl_pool pool = arl_pool_of(frame);
  const int64_t tiles = arl_tiles(&launch), items = launch.chunks * tiles;
  const int64_t lanes = launch.replicas < ARL_TILE ? launch.replicas : ARL_TILE;
  const int64_t rows = launch.capacity * launch.num_passes * lanes + launch.entries * lanes / 8;
  run_work work = {&launch, arl_choose(numerics, launch.replicas, arl_best_level())};
  return arl_share(&pool, items, grain_of(&pool, items, rows), run_part, &work) ? no_memory(frame)
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
      {"rows", S32, "DT4"}, {"lengths", S32, "D"},   {"dpus", U32, "D"},
      {"seed", U32, ""},    {"first_pass", U32, ""}, {"counts", U32, "DE"},
  };
  void *data[6];
  arl_sizes sizes;
  error = arl_read_buffers(frame, buffers, 5, 1, data, &sizes);
  if (error) return error;
  arl_launch launch = {
      .rows = data[0],
      .lengths = data[1],
      .dpus = data[2],
      .seed = *(const uint32_t *)data[3],
      .first_pass = *(const uint32_t *)data[4],
  };
  error = set_program(frame, values, &sizes, &launch);
  if (error) return error;
  const arl_pool pool = arl_pool_of(frame);
  const int64_t rows = launch.capacity * launch.num_passes + launch.entries / 8;
  visits_work work = {&launch, data[5]};
  return arl_share(&pool, launch.chunks, grain_of(&pool, launch.chunks, rows), visits_part, &work)
             ? no_memory(frame)
             : NULL;
}

// Check: rows whose indices may be trusted from then on.

typedef struct {
  const arl_wide_row *rows;
  const int32_t *lengths;
  int64_t capacity;
  uint32_t size, actions;
} check_work;

static bool is_bad(const check_work *work, const arl_wide_row *row) {
  return row->entry >= work->size || row->next_entry > work->size - work->actions ||
         (row->meta & ARL_NEXT_ACTION_MASK) >= work->actions;
}

static int check_part(void *argument, int64_t first, int64_t last) {
  const check_work *work = argument;
  int bad = 0;
  for (int64_t d = first; d < last; ++d)
    for (int64_t t = 0; t < work->lengths[d]; ++t)
      bad |= is_bad(work, work->rows + d * work->capacity + t);
  return bad;
}

static XLA_FFI_Error *name_bad_row(const XLA_FFI_CallFrame *frame, const check_work *work,
                                   int64_t chunks) {
  for (int64_t d = 0; d < chunks; ++d)
    for (int64_t t = 0; t < work->lengths[d]; ++t) {
      const arl_wide_row *row = work->rows + d * work->capacity + t;
      if (is_bad(work, row))
        return arl_fail(frame, XLA_FFI_Error_Code_OUT_OF_RANGE,
                        "row %lld of chunk %lld is outside tables of %u entries and %u actions: "
                        "s * A + a is %d, s' * A is %d, a' is %u",
                        (long long)t, (long long)d, work->size, work->actions, (int)row->entry,
                        (int)row->next_entry, row->meta & ARL_NEXT_ACTION_MASK);
    }
  return NULL;
}

ARL_EXPORT XLA_FFI_Error *accel_rl_tabular_check(XLA_FFI_CallFrame *frame) {
  if (arl_answer_metadata(frame)) return NULL;
  static const arl_attribute attributes[] = {{"num_actions", 1, 65536}, {"size", 1, MOST}};
  int64_t values[2];
  XLA_FFI_Error *error = arl_read_attributes(frame, attributes, 2, values);
  if (error) return error;
  static const arl_buffer buffers[] = {
      {"rows", S32, "DT4"}, {"lengths", S32, "D"}, {"checked rows", S32, "DT4"}};
  void *data[3];
  arl_sizes sizes;
  error = arl_read_buffers(frame, buffers, 2, 1, data, &sizes);
  if (error) return error;
  const int64_t chunks = sizes.of['D'];
  check_work work = {data[0], data[1], sizes.of['T'], (uint32_t)values[1], (uint32_t)values[0]};
  for (int64_t d = 0; d < chunks; ++d)
    if (work.lengths[d] < 0 || work.lengths[d] > work.capacity)
      return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                      "lengths[%lld] must be in [0, %lld], got %d", (long long)d,
                      (long long)work.capacity, work.lengths[d]);
  const arl_pool pool = arl_pool_of(frame);
  if (arl_share(&pool, chunks, grain_of(&pool, chunks, work.capacity), check_part, &work))
    return name_bad_row(frame, &work, chunks);
  if (data[2] != data[0])
    memcpy(data[2], data[0], (size_t)(chunks * work.capacity) * sizeof *work.rows);
  return NULL;
}

// For the loader: the interface that the handlers were built against, and the instruction set.

ARL_EXPORT int accel_rl_ffi_version(void) { return XLA_FFI_API_MAJOR * 1000 + XLA_FFI_API_MINOR; }

ARL_EXPORT const char *accel_rl_instruction_set(void) { return arl_level_name(arl_best_level()); }
