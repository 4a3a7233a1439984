// Right calls of the handlers: their results, their answers about themselves, and one result that
// was worked out by hand.

#include <string.h>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "check.h"
#include "example.h"
#include "stand_in.h"

int accel_rl_ffi_version(void);
const char *accel_rl_instruction_set(void);

static uint64_t state = 0xCA11ull;

static void test_call(handler_t which, truth_program program, int64_t capacity,
                      const int32_t lengths[CHUNKS], int64_t replicas,
                      XLA_FFI_ExecutionContext *context) {
  example_t example;
  example_make(&example, which, program, capacity, lengths, replicas, context, &state);
  const reply_t reply = example_call(&example);
  CHECK(reply.code == XLA_FFI_Error_Code_OK, "handler %d: %s", (int)which, reply.message);
  CHECK(example_is_right(&example), "handler %d, numerics %d, rule %d, %lld replicas", (int)which,
        program.numerics, program.rule, (long long)replicas);
  example_free(&example);
}

static void test_calls(XLA_FFI_ExecutionContext *context) {
  const int32_t lengths[CHUNKS] = {150, 0, 3}, none[CHUNKS] = {0, 0, 0};
  for (int which = 0; which < HANDLERS; ++which)
    for (int numerics = FP32; numerics <= POW2; ++numerics)
      for (int rule = 0; rule < RULES; ++rule)
        for (int64_t replicas = 0; replicas < 3; ++replicas) {
          if (which != LAUNCH && replicas != 1) continue;
          const truth_program program = example_program(numerics, rule);
          test_call((handler_t)which, program, 150, lengths, replicas, context);
          test_call((handler_t)which, program, 0, none, replicas, context);
        }
}

// No chunks, but each with room for as many rows and passes as can be said: nothing to do.
static void test_no_chunks(handler_t which, XLA_FFI_ExecutionContext *context) {
  const int32_t lengths[CHUNKS] = {1, 0, 1};
  truth_program program = example_program(POW2, Q_LEARNING);
  program.order = STR;
  example_t example;
  example_make(&example, which, program, 1, lengths, 64, context, &state);
  call_t *call = &example.call;
  const int64_t result = call->num_arguments;
  for (int64_t k = 0; k < 3; ++k) call->dims[k][0] = 0;
  if (which != EXAMINE) {
    call->dims[result][which == LAUNCH ? 1 : 0] = 0;
    call->values[call_find(call, "num_passes")] = INT32_MAX;
  }
  call->dims[0][1] = INT32_MAX;
  const reply_t reply = example_call(&example);
  CHECK(reply.code == XLA_FFI_Error_Code_OK, "handler %d: %s", (int)which, reply.message);
  CHECK(which == EXAMINE ? example_is_right(&example) : example_is_marked(&example),
        "handler %d finds something in no chunks", (int)which);
  example_free(&example);
}

static void test_metadata(void) {
  for (int which = 0; which < HANDLERS; ++which) {
    XLA_FFI_Metadata metadata = {.struct_size = XLA_FFI_Metadata_STRUCT_SIZE, .traits = 99};
    XLA_FFI_Metadata_Extension extension = {
        .extension_base = {XLA_FFI_Metadata_Extension_STRUCT_SIZE, XLA_FFI_Extension_Metadata,
                           NULL},
        .metadata = &metadata,
    };
    XLA_FFI_CallFrame frame = {.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE,
                               .extension_start = &extension.extension_base};
    CHECK(signatures[which].handler(&frame) == NULL, "handler %d", which);
    const XLA_FFI_Api_Version *version = &metadata.api_version;
    CHECK(version->major_version == 0 && version->minor_version == 3, "handler %d: version %d.%d",
          which, version->major_version, version->minor_version);
    CHECK(version->struct_size == XLA_FFI_Api_Version_STRUCT_SIZE && metadata.traits == 0,
          "handler %d: traits %u", which, metadata.traits);
  }
}

// Make a call as XLA's threads do: in a mode that flushes subnormal floats to zero, which must be
// the mode after it too.
static reply_t call_flushing(example_t *example) {
#ifdef __SSE__
  const unsigned mode = _mm_getcsr(), flushing = mode | 0x8040;
  _mm_setcsr(flushing);
  const reply_t reply = example_call(example);
  const unsigned left = _mm_getcsr();
  _mm_setcsr(mode);
  CHECK(left == flushing, "the call leaves the mode %x, not %x", left, flushing);
  return reply;
#else
  return example_call(example);
#endif
}

// Q-learning with alpha = gamma = 1/2, from a table of zeros, on (s, a, r, s'): (0, 0, 1, 1),
// (1, 1, 2, 0), (0, 0, 0, end). One row at a time:
//   Q(0, 0) = 1 / 2;  Q(1, 1) = (2 + Q(0, 0) / 2) / 2 = 9/8;  Q(0, 0) = Q(0, 0) / 2 = 1/4.
// In one target block the second target is 2, so Q(1, 1) = 1.
// All times `scale`, as rewards are.
static void test_pinned(int numerics, int64_t block, double expected, double scale,
                        XLA_FFI_ExecutionContext *context) {
  static const double halves[] = {0, 0.5, 5000, 128};
  const int32_t lengths[CHUNKS] = {3, 0, 0};
  truth_program program = {
      .numerics = numerics, .order = SEQ, .stride = 4, .block = block, .states = 2, .actions = 2};
  const double half = halves[numerics];
  const uint32_t rates[3] = {truth_bits(numerics, half), truth_bits(numerics, half), 0};
  const arl_wide_row rows[3] = {{0, 2, truth_bits(numerics, scale), 1 << 16},
                                {3, 0, truth_bits(numerics, 2 * scale), 1 << 16},
                                {0, 2, 0, 0}};
  const double want[4] = {scale / 4, 0, 0, expected * scale};
  example_t example;
  example_make(&example, LAUNCH, program, 3, lengths, 1, context, &state);
  const size_t words = 4 * (size_t)example.scenario.launch.starts;
  memset(example.inputs, 0, words * sizeof *example.inputs);
  memcpy(example.inputs + words, rates, sizeof rates);
  memcpy(example.scenario.rows, rows, sizeof rows);
  example.call.values[call_find(&example.call, "num_passes")] = 1;
  const reply_t reply = call_flushing(&example);
  CHECK(reply.code == XLA_FFI_Error_Code_OK, "numerics %d: %s", numerics, reply.message);
  for (int e = 0; e < 4; ++e)
    CHECK(truth_entry(numerics, example.result[e]) == want[e],
          "numerics %d, entry %d: %.9g, not %.9g", numerics, e,
          truth_entry(numerics, example.result[e]), want[e]);
  example_free(&example);
}

static void test_pins(XLA_FFI_ExecutionContext *context) {
  static const double scales[] = {0, 1, 10000, 65536};
  for (int numerics = FP32; numerics <= POW2; ++numerics) {
    test_pinned(numerics, 1, 1.125, scales[numerics], context);
    test_pinned(numerics, 128, 1, scales[numerics], context);
  }
  test_pinned(FP32, 1, 1.125, 0x1p-140, context);  // a subnormal float
}

int main(void) {
  stand_in_t stand_in;
  stand_in_start(&stand_in, THREADS, 2);
  XLA_FFI_ExecutionContext context = {.pool = stand_in_pool(&stand_in)};
  test_calls(&context);
  context.num_threads_fails = 1;  // there may be no pool
  test_calls(&context);
  for (int which = 0; which < HANDLERS; ++which) test_no_chunks((handler_t)which, &context);
  test_pins(&context);
  stand_in_stop(&stand_in);
  test_metadata();
  CHECK(accel_rl_ffi_version() == 3, "version %d", accel_rl_ffi_version());
  const char *set = accel_rl_instruction_set();
  CHECK(!strcmp(set, "base") || !strcmp(set, "avx2") || !strcmp(set, "avx512"), "%s", set);
  CHECK(living_errors() == 0, "%lld errors left", (long long)living_errors());
  return finish();
}
