#include "example.h"

#include <string.h>

#include "check.h"
#include "draws.h"

static const uint32_t MARK = 0xC3C3C3C3;

const signature_t signatures[HANDLERS] = {
    [LAUNCH] = {accel_rl_tabular_launch,
                10,
                {{"rows", "DT4"},
                 {"lengths", "D"},
                 {"dpus", "D"},
                 {"verdict", "14"},
                 {"table", "RGE"},
                 {"rates", "3R"},
                 {"explore", ""},
                 {"seed", ""},
                 {"first_pass", ""},
                 {"tables", "RDE"}}},
    [VISITS] = {accel_rl_tabular_visits,
                7,
                {{"rows", "DT4"},
                 {"lengths", "D"},
                 {"dpus", "D"},
                 {"verdict", "14"},
                 {"seed", ""},
                 {"first_pass", ""},
                 {"counts", "DE"}}},
    [EXAMINE] = {accel_rl_tabular_examine,
                 4,
                 {{"rows", "DT4"}, {"lengths", "D"}, {"dpus", "D"}, {"verdict", "14"}}},
};

truth_program example_program(int numerics, int rule) {
  return (truth_program){.numerics = numerics,
                         .rule = rule,
                         .order = RAN,
                         .stride = 4,
                         .block = 3,
                         .states = 5,
                         .actions = 4,
                         .explore = 6554};
}

// Draw tables and rates, [R][G][E] and [3][R], and train each replica. Their bits become `inputs`.
static void draw_replicas(example_t *example, uint64_t *state) {
  truth_program *program = &example->scenario.program;
  const int64_t entries = example->scenario.launch.entries, replicas = example->replicas;
  const int64_t start = example->scenario.launch.starts * entries, words = replicas * start;
  double *const rates[] = {&program->alpha, &program->gamma, &program->epsilon};
  example->table = must_allocate((size_t)words * sizeof *example->table);
  example->trained = must_allocate((size_t)(words * CHUNKS) * sizeof *example->trained);
  example->visits = must_allocate((size_t)(entries * CHUNKS) * sizeof *example->visits);
  example->inputs = must_allocate((size_t)(words + 3 * replicas) * sizeof *example->inputs);
  for (int64_t r = 0; r < replicas; ++r) {
    double *table = example->table + r * start;
    for (int64_t e = 0; e < start; ++e) {
      table[e] = draw_entry(program->numerics, state);
      example->inputs[r * start + e] = truth_bits(program->numerics, table[e]);
    }
    for (int k = 0; k < 3; ++k) {
      *rates[k] = draw_rate(program->numerics, state);
      example->inputs[words + k * replicas + r] = truth_bits(program->numerics, *rates[k]);
    }
    scenario_train(&example->scenario, table, example->trained + r * entries * CHUNKS,
                   example->visits);
  }
}

static void add_launch(example_t *example) {
  const arl_launch *launch = &example->scenario.launch;
  const int64_t entries = launch->entries, starts = launch->starts, replicas = example->replicas;
  const XLA_FFI_DataType dtype =
      example->scenario.program.numerics == FP32 ? XLA_FFI_DataType_F32 : XLA_FFI_DataType_S32;
  call_t *call = &example->call;
  call_argument(call, dtype, example->inputs, 3, (int64_t[]){replicas, starts, entries});
  call_argument(call, dtype, example->inputs + replicas * starts * entries, 2,
                (int64_t[]){3, replicas});
  call_argument(call, XLA_FFI_DataType_U32, &example->explore, 0, NULL);
}

static void add_attributes(example_t *example) {
  const truth_program *program = &example->scenario.program;
  call_t *call = &example->call;
  call_attribute(call, "num_actions", program->actions);
  if (example->which == EXAMINE) {
    call_attribute(call, "size", program->states * program->actions);
    return;
  }
  call_attribute(call, "rule", program->rule);
  call_attribute(call, "order", program->order);
  call_attribute(call, "stride", program->stride);
  call_attribute(call, "target_block", program->block);
  call_attribute(call, "num_passes", example->scenario.launch.num_passes);
  if (example->which == LAUNCH) call_attribute(call, "numerics", program->numerics);
}

static void add_result(example_t *example) {
  const int64_t entries = example->scenario.launch.entries;
  const int64_t dims[HANDLERS][3] = {
      {example->replicas, CHUNKS, entries}, {CHUNKS, entries}, {1, 4}};
  const int64_t ranks[HANDLERS] = {3, 2, 2}, rank = ranks[example->which];
  const XLA_FFI_DataType dtypes[HANDLERS] = {example->call.buffers[4].dtype, XLA_FFI_DataType_U32,
                                             XLA_FFI_DataType_S32};
  example->result_words = 1;
  for (int64_t axis = 0; axis < rank; ++axis)
    example->result_words *= (size_t)dims[example->which][axis];
  example->result = must_allocate(example->result_words * sizeof *example->result);
  call_result(&example->call, dtypes[example->which], example->result, rank, dims[example->which]);
}

void example_make(example_t *example, handler_t which, truth_program program, int64_t capacity,
                  const int32_t lengths[CHUNKS], int64_t replicas,
                  XLA_FFI_ExecutionContext *context, uint64_t *state) {
  *example = (example_t){.which = which, .replicas = replicas, .call = {.context = context}};
  scenario_t *scenario = &example->scenario;
  scenario_draw(scenario, program, capacity, lengths, state);
  draw_replicas(example, state);
  example->explore = scenario->launch.explore;
  example->seed = scenario->launch.seed;
  example->first_pass = scenario->launch.first_pass;
  const int64_t chunks = CHUNKS;
  call_t *call = &example->call;
  call_argument(call, XLA_FFI_DataType_S32, scenario->rows, 3, (int64_t[]){CHUNKS, capacity, 4});
  call_argument(call, XLA_FFI_DataType_S32, scenario->lengths, 1, &chunks);
  call_argument(call, XLA_FFI_DataType_U32, scenario->dpus, 1, &chunks);
  if (which != EXAMINE) {
    call_argument(call, XLA_FFI_DataType_S32, example->verdict, 2, (int64_t[]){1, 4});
    if (which == LAUNCH) add_launch(example);
    call_argument(call, XLA_FFI_DataType_U32, &example->seed, 0, NULL);
    call_argument(call, XLA_FFI_DataType_U32, &example->first_pass, 0, NULL);
  }
  add_result(example);
  add_attributes(example);
  example_mark(example);
}

void example_free(example_t *example) {
  scenario_free(&example->scenario);
  free(example->table);
  free(example->trained);
  free(example->visits);
  free(example->inputs);
  free(example->result);
}

reply_t example_call(example_t *example) {
  return call_make(&example->call, signatures[example->which].handler);
}

void example_mark(example_t *example) {
  for (size_t k = 0; k < example->result_words; ++k) example->result[k] = MARK;
}

bool example_is_marked(const example_t *example) {
  for (size_t k = 0; k < example->result_words; ++k)
    if (example->result[k] != MARK) return false;
  return true;
}

bool example_is_right(const example_t *example) {
  for (size_t k = 0; k < example->result_words; ++k) {
    uint32_t want = 0;  // nothing found
    if (example->which == VISITS) want = example->visits[k];
    if (example->which == LAUNCH)
      want = truth_bits(example->scenario.program.numerics, example->trained[k]);
    if (example->result[k] != want) return false;
  }
  return true;
}
