// XLA FFI handlers of passes by owner; accel_rl/tabular/passes/native_owned.py calls them.

#include "owned.h"

#include <string.h>

#define ARL_NUMERICS ARL_FP32  // only for names that do not depend on it
#include "float_mode.h"
#include "random.h"
#include "runs.h"
#include "tabular.h"

#define S32 XLA_FFI_DataType_S32
#define U32 XLA_FFI_DataType_U32

// What can be known before records are read; `size` is S * A.
static XLA_FFI_Error *check(const XLA_FFI_CallFrame *frame, const arl_owned *launch, int64_t size,
                            const int32_t *verdict) {
  const XLA_FFI_Error_Code invalid = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  if (size % launch->actions)
    return arl_fail(frame, invalid,
                    "attribute size must be a multiple of num_actions, %u, got %lld",
                    launch->actions, (long long)size);
  if (launch->lanes < 1 || launch->rows > INT32_MAX / launch->lanes)
    return arl_fail(frame, invalid,
                    "records must have lanes and at most %d rows in all, got %lld lanes of %lld",
                    INT32_MAX, (long long)launch->lanes, (long long)launch->rows);
  if (launch->slots > INT32_MAX)
    return arl_fail(frame, invalid, "runs must be at most %d, got %lld", INT32_MAX,
                    (long long)launch->slots);
  const int64_t capacity = launch->rows * launch->lanes;
  XLA_FFI_Error *error =
      arl_check_verdict(frame, verdict, capacity, (uint32_t)size, launch->actions);
  return error ? error : arl_check_lengths(frame, launch->lengths, launch->chunks, capacity);
}

// The error for what was found while records were read. Rows were examined before they became
// records, so this does not depend on the data, and all devices fail alike.
static XLA_FFI_Error *fault_of(const XLA_FFI_CallFrame *frame, const arl_owned *launch, int fault) {
  if (fault == ARL_BAD_INDEX)
    return arl_fail(frame, XLA_FFI_Error_Code_OUT_OF_RANGE,
                    "indices of records must be in [0, %lld)", (long long)launch->values);
  if (fault == ARL_BAD_SLOT)
    return arl_fail(frame, XLA_FFI_Error_Code_OUT_OF_RANGE, "slots of runs must be in [0, %lld)",
                    (long long)launch->slots);
  if (fault == ARL_NO_MEMORY)
    return arl_fail(frame, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED,
                    "tabular kernel: no memory for a thread's rows");
  return NULL;
}

static XLA_FFI_Error *share(XLA_FFI_CallFrame *frame, const arl_owned *launch, int64_t items,
                            int (*part)(void *argument, int64_t first, int64_t last),
                            void *argument) {
  const arl_pool pool = arl_pool_of(frame);
  const double rows = (double)launch->rows * (double)launch->lanes * launch->num_passes;
  const int64_t grain = arl_grain(&pool, items, rows);
  return fault_of(frame, launch, arl_share(&pool, items, grain, part, argument));
}

// Launch.

typedef struct {
  const arl_owned *launch;
  arl_owned_run *run;
} owned_work;

static int owned_part(void *argument, int64_t first, int64_t last) {
  const owned_work *work = argument;
  const arl_float_mode mode = arl_keep_subnormals();
  const int status = work->run(work->launch, first, last);
  arl_restore_float_mode(mode);
  return status;
}

// Values of next states for S states and one more, in as many columns as the rule may draw of.
static XLA_FFI_Error *check_values(const XLA_FFI_CallFrame *frame, const arl_owned *launch,
                                   int64_t size) {
  const int64_t states = size / launch->actions + 1, values = launch->values;
  const int64_t columns[ARL_CHOICES] = {values / states, launch->actions + 1, 2};
  if (values < 1 || values > INT32_MAX || values != states * columns[launch->choice])
    return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                    "values must hold the choices of %lld states, got %lld", (long long)states,
                    (long long)values);
  return NULL;
}

ARL_EXPORT XLA_FFI_Error *accel_rl_tabular_owned(XLA_FFI_CallFrame *frame) {
  if (arl_answer_metadata(frame)) return NULL;
  enum { CHOICE, ROTATES, ACTIONS, SIZE, PASSES, NUMERICS, ATTRIBUTES };
  static const arl_attribute attributes[] = {
      {"choice", 0, ARL_CHOICES - 1}, {"rotates", 0, 1},
      {"num_actions", 1, 65536},      {"size", 1, INT32_MAX},
      {"num_passes", 1, INT32_MAX},   {"numerics", ARL_FP32, ARL_INT32_POW2}};
  int64_t values[ATTRIBUTES];
  XLA_FFI_Error *error = arl_read_attributes(frame, attributes, ATTRIBUTES, values);
  if (error) return error;
  const arl_choice choice = (arl_choice)values[CHOICE];
  const XLA_FFI_DataType entry = values[NUMERICS] == ARL_FP32 ? XLA_FFI_DataType_F32 : S32;
  const char *runs = choice == ARL_DRAWN_TABLE ? "RD2E" : "RD1E";
  const arl_buffer buffers[] = {
      {"records", U32, "DT2L"}, {"lengths", S32, "D"},   {"slots", S32, "DL"},
      {"dpus", U32, "D"},       {"verdict", S32, "14"},  {"starts", entry, runs},
      {"values", entry, "RM"},  {"alpha", entry, "R"},   {"explore", U32, ""},
      {"seed", U32, ""},        {"first_pass", U32, ""}, {"runs", entry, runs},
  };
  void *data[12];
  arl_sizes sizes;
  error = arl_read_buffers(frame, buffers, 11, 1, data, &sizes);
  if (error) return error;
  const arl_owned launch = {
      .choice = choice,
      .rotates = values[ROTATES] == 1,
      .actions = (uint32_t)values[ACTIONS],
      .explore = *(const uint32_t *)data[8],
      .seed = *(const uint32_t *)data[9],
      .first_pass = *(const uint32_t *)data[10],
      .num_passes = (uint32_t)values[PASSES],
      .chunks = sizes.of['D'],
      .rows = sizes.of['T'],
      .lanes = sizes.of['L'],
      .slots = sizes.of['E'],
      .values = sizes.of['M'],
      .replicas = sizes.of['R'],
      .records = data[0],
      .lengths = data[1],
      .first_slots = data[2],
      .dpus = data[3],
      .starts = data[5],
      .next_values = data[6],
      .alpha = data[7],
      .runs = data[11],
  };
  error = check(frame, &launch, values[SIZE], data[4]);
  if (!error) error = check_values(frame, &launch, values[SIZE]);
  if (error) return error;
  owned_work work = {&launch, arl_choose_owned(values[NUMERICS], launch.lanes, arl_best_level())};
  return share(frame, &launch, launch.chunks * launch.replicas, owned_part, &work);
}

// Visits of runs of two tables, one of which is drawn for each row. (Of one table a run's visits
// are its rows.)

typedef struct {
  const arl_owned *launch;
  uint32_t *counts;  // [D][2][S]
} owned_visits_work;

static int count_lane(const arl_owned *launch, int64_t chunk, int64_t lane, uint32_t pass,
                      uint32_t *counts) {
  const int64_t lanes = launch->lanes, length = launch->lengths[chunk];
  const int64_t rows = length / lanes + (lane < length % lanes);
  const uint32_t *record = launch->records + chunk * launch->rows * 2 * lanes + lane;
  const uint32_t stream = launch->dpus[chunk] * (uint32_t)lanes + (uint32_t)lane;
  uint32_t draws = arl_stream(launch->seed, pass, stream, ARL_ACTION_STREAM);
  uint32_t slot = (uint32_t)launch->first_slots[chunk * lanes + lane];
  for (int64_t t = 0; t < rows; ++t, record += 2 * lanes) {
    if (t > 0) slot += *record >> 31;
    if (slot >= launch->slots) return ARL_BAD_SLOT;
    const uint32_t second = arl_draw(&draws) >> 31;
    arl_draw(&draws);
    counts[second * launch->slots + slot] += 1;
  }
  return 0;
}

static int owned_visits_part(void *argument, int64_t first, int64_t last) {
  const owned_visits_work *work = argument;
  const arl_owned *launch = work->launch;
  int fault = 0;
  for (int64_t d = first; d < last && !fault; ++d) {
    uint32_t *counts = work->counts + d * 2 * launch->slots;
    memset(counts, 0, (size_t)(2 * launch->slots) * sizeof *counts);
    for (uint32_t k = 0; k < launch->num_passes && !fault; ++k)
      for (int64_t lane = 0; lane < launch->lanes && !fault; ++lane)
        fault = count_lane(launch, d, lane, launch->first_pass + k, counts);
  }
  return fault;
}

ARL_EXPORT XLA_FFI_Error *accel_rl_tabular_owned_visits(XLA_FFI_CallFrame *frame) {
  if (arl_answer_metadata(frame)) return NULL;
  enum { ACTIONS, SIZE, PASSES, ATTRIBUTES };
  static const arl_attribute attributes[] = {
      {"num_actions", 1, 65536}, {"size", 1, INT32_MAX}, {"num_passes", 1, INT32_MAX}};
  int64_t values[ATTRIBUTES];
  XLA_FFI_Error *error = arl_read_attributes(frame, attributes, ATTRIBUTES, values);
  if (error) return error;
  static const arl_buffer buffers[] = {
      {"records", U32, "DT2L"}, {"lengths", S32, "D"},  {"slots", S32, "DL"},
      {"dpus", U32, "D"},       {"verdict", S32, "14"}, {"seed", U32, ""},
      {"first_pass", U32, ""},  {"counts", U32, "D2E"},
  };
  void *data[8];
  arl_sizes sizes;
  error = arl_read_buffers(frame, buffers, 7, 1, data, &sizes);
  if (error) return error;
  const arl_owned launch = {
      .actions = (uint32_t)values[ACTIONS],
      .seed = *(const uint32_t *)data[5],
      .first_pass = *(const uint32_t *)data[6],
      .num_passes = (uint32_t)values[PASSES],
      .chunks = sizes.of['D'],
      .rows = sizes.of['T'],
      .lanes = sizes.of['L'],
      .slots = sizes.of['E'],
      .records = data[0],
      .lengths = data[1],
      .first_slots = data[2],
      .dpus = data[3],
  };
  error = check(frame, &launch, values[SIZE], data[4]);
  if (error) return error;
  owned_visits_work work = {&launch, data[7]};
  return share(frame, &launch, launch.chunks, owned_visits_part, &work);
}
