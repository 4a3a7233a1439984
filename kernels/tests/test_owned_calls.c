// The handlers of passes by owner: right calls, on threads too, and wrong ones, each refused by a
// message that names what is wrong.

#include <string.h>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "check.h"
#include "frames.h"
#include "owned_case.h"
#include "stand_in.h"

XLA_FFI_Handler accel_rl_tabular_owned, accel_rl_tabular_owned_visits;

enum { RECORDS, LENGTHS, SLOTS, DPUS, VERDICT };

static const char *const launch_names[] = {"records", "lengths", "slots",      "dpus",
                                           "verdict", "starts",  "values",     "alpha",
                                           "explore", "seed",    "first_pass", "runs"};
static const char *const visits_names[] = {"records", "lengths", "slots",      "dpus",
                                           "verdict", "seed",    "first_pass", "counts"};

static uint64_t state = 0x0CA11ull;
static stand_in_t stand_in;
static XLA_FFI_ExecutionContext context;

typedef struct {
  owned_case drawn;
  bool counts;  // visits, not values
  call_t call;
  int32_t verdict[4];
  uint32_t *result;
  const char *const *names;
} example_t;

static void make(example_t *example, bool counts, owned_shape shape) {
  *example = (example_t){.counts = counts, .call = {.context = &context}};
  example->names = counts ? visits_names : launch_names;
  owned_case *drawn = &example->drawn;
  owned_draw(drawn, shape, &state);
  arl_owned *launch = &drawn->launch;
  call_t *call = &example->call;
  const XLA_FFI_DataType s32 = XLA_FFI_DataType_S32, u32 = XLA_FFI_DataType_U32;
  const XLA_FFI_DataType entry = shape.numerics == FP32 ? XLA_FFI_DataType_F32 : s32;
  const int64_t chunks = launch->chunks, lanes = launch->lanes, replicas = launch->replicas;
  const int64_t runs[] = {replicas, chunks, shape.choice == ARL_DRAWN_TABLE ? 2 : 1, launch->slots};
  call_argument(call, u32, drawn->records, 4, (int64_t[]){chunks, launch->rows, 2, lanes});
  call_argument(call, s32, drawn->lengths, 1, &chunks);
  call_argument(call, s32, drawn->slots, 2, (int64_t[]){chunks, lanes});
  call_argument(call, u32, drawn->dpus, 1, &chunks);
  call_argument(call, s32, example->verdict, 2, (int64_t[]){1, 4});
  if (!counts) {
    call_argument(call, entry, drawn->starts, 4, runs);
    call_argument(call, entry, drawn->values, 2, (int64_t[]){replicas, launch->values});
    call_argument(call, entry, drawn->alpha, 1, &replicas);
    call_argument(call, u32, &launch->explore, 0, NULL);
  }
  call_argument(call, u32, &launch->seed, 0, NULL);
  call_argument(call, u32, &launch->first_pass, 0, NULL);
  example->result = drawn->runs;
  if (counts)
    call_result(call, u32, example->result, 3, runs + 1);
  else
    call_result(call, entry, example->result, 4, runs);
  call_attribute(call, "num_actions", OWNED_ACTIONS);
  call_attribute(call, "num_passes", launch->num_passes);
  call_attribute(call, "size", OWNED_STATES * OWNED_ACTIONS);
  if (counts) return;
  call_attribute(call, "choice", shape.choice);
  call_attribute(call, "rotates", shape.rotates);
  call_attribute(call, "numerics", shape.numerics);
}

static reply_t make_call(example_t *example) {
  return call_make(&example->call,
                   example->counts ? accel_rl_tabular_owned_visits : accel_rl_tabular_owned);
}

// As XLA's threads call: in a mode that flushes subnormal floats, which must be left as it was.
static reply_t make_call_flushing(example_t *example) {
#ifdef __SSE__
  const unsigned mode = _mm_getcsr(), flushing = mode | 0x8040;
  _mm_setcsr(flushing);
  const reply_t reply = make_call(example);
  CHECK(_mm_getcsr() == flushing, "the call leaves the mode %x", _mm_getcsr());
  _mm_setcsr(mode);
  return reply;
#else
  return make_call(example);
#endif
}

static void test_right(owned_shape shape, bool counts, conduct_t conduct) {
  stand_in_start(&stand_in, conduct, 3);
  context = (XLA_FFI_ExecutionContext){.pool = stand_in_pool(&stand_in)};
  example_t example;
  make(&example, counts, shape);
  const reply_t reply = make_call_flushing(&example);
  CHECK(reply.code == XLA_FFI_Error_Code_OK, "%s", reply.message);
  const uint32_t *want = counts ? example.drawn.visits : example.drawn.expected;
  const int64_t results = example.drawn.results / (counts ? shape.replicas : 1);
  for (int64_t k = 0; k < results; ++k)
    CHECK(example.result[k] == want[k], "numerics %d, choice %d: value %lld is %08x, not %08x",
          shape.numerics, (int)shape.choice, (long long)k, example.result[k], want[k]);
  CHECK(shape.most_rows < 1000 || stand_in.scheduled > 0, "the call keeps all work to itself");
  stand_in_stop(&stand_in);
  owned_free(&example.drawn);
}

// The smallest subnormal float: half of it rounds to 0, all of it must stay.
static void test_subnormal(void) {
  example_t example;
  make(&example, false, (owned_shape){FP32, ARL_NOTHING_DRAWN, false, 1, 1, 1, 1, 1, 1});
  const uint32_t tiny = 1, one = truth_bits(FP32, 1);
  *example.drawn.starts = 0;
  memset(example.drawn.values, 0, (size_t)example.drawn.launch.values * sizeof tiny);
  *example.drawn.alpha = one;
  example.drawn.records[1] = tiny;
  CHECK(make_call_flushing(&example).code == XLA_FFI_Error_Code_OK, "a subnormal reward");
  CHECK(*example.result == tiny, "a subnormal reward becomes %08x", *example.result);
  owned_free(&example.drawn);
}

static void refuse(example_t *example, XLA_FFI_Error_Code code, const char *word,
                   const char *what) {
  const reply_t reply = make_call(example);
  CHECK(reply.code == code && strstr(reply.message, word), "%s of %s: code %d: %s", what, word,
        (int)reply.code, reply.message);
}

static void test_buffers(bool counts) {
  const XLA_FFI_Error_Code invalid = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  example_t example;
  make(&example, counts, (owned_shape){POW2, ARL_DRAWN_TABLE, true, 3, 40, 5, 2, 4, 1});
  const call_t right = example.call;
  for (int64_t k = 0; k < right.num_arguments + 1; ++k) {
    XLA_FFI_Buffer *buffer = example.call.buffers + k;
    for (int dtype = 0; dtype <= 33; ++dtype) {
      buffer->dtype = (XLA_FFI_DataType)dtype;
      if (buffer->dtype != right.buffers[k].dtype)
        refuse(&example, invalid, example.names[k], "data type");
    }
    example.call = right;
    for (int64_t rank = 0; rank <= MOST_AXES; ++rank) {
      buffer->rank = rank;
      if (rank != right.buffers[k].rank) refuse(&example, invalid, example.names[k], "rank");
    }
    example.call = right;
    for (int64_t axis = 0; axis < right.buffers[k].rank; ++axis) {
      const int64_t size = right.dims[k][axis], sizes[] = {0, size - 1, INT64_MAX, size + 1};
      // No other buffer says how many rows a lane, or how many runs of visits a chunk, may have.
      if (counts && k == right.num_arguments && axis == 2) continue;
      for (int change = 0; change < (k == RECORDS && axis == 1 ? 3 : 4); ++change) {
        example.call.dims[k][axis] = sizes[change];
        const reply_t reply = make_call(&example);
        CHECK(reply.code == invalid, "%s, axis %lld of %lld: %s", example.names[k], (long long)axis,
              (long long)sizes[change], reply.message);
        example.call = right;
      }
    }
  }
  for (int more = -1; more <= 1; more += 2) {
    example.call.num_arguments = right.num_arguments + more;
    refuse(&example, invalid, "arguments", "number");
    example.call = right;
  }
  owned_free(&example.drawn);
}

static void test_attributes(bool counts) {
  static const struct {
    const char *name;
    int64_t wrong[5];
  } attributes[] = {
      {"num_actions", {0, 65537, -1, 4, INT64_MAX}},  // of 15 entries
      {"num_passes", {0, -1, INT64_C(1) << 31, INT64_MIN, INT64_MAX}},
      {"size", {0, -1, INT64_C(1) << 31, 14, 16}},
      {"choice", {-1, 3, 0, INT64_MIN, INT64_MAX}},  // which has one table
      {"numerics", {0, 4, -1, INT64_MIN, INT64_MAX}},
      {"rotates", {-1, 2, 4, INT64_MIN, INT64_MAX}},
  };
  example_t example;
  make(&example, counts, (owned_shape){SCALED, ARL_DRAWN_TABLE, true, 3, 40, 5, 2, 4, 1});
  const call_t right = example.call;
  for (int a = 0; a < (counts ? 3 : 6); ++a)
    for (int k = 0; k < 5; ++k) {
      example.call.values[call_find(&right, attributes[a].name)] = attributes[a].wrong[k];
      const reply_t reply = make_call(&example);
      CHECK(reply.code == XLA_FFI_Error_Code_INVALID_ARGUMENT, "%s of %lld: %s", attributes[a].name,
            (long long)attributes[a].wrong[k], reply.message);
      example.call = right;
    }
  owned_free(&example.drawn);
}

static void test_data(bool counts) {
  example_t example;
  make(&example, counts, (owned_shape){FP32, ARL_DRAWN_TABLE, true, 3, 40, 5, 2, 4, 1});
  const int32_t lengths[] = {-1, 41, INT32_MIN, INT32_MAX}, right = example.drawn.lengths[0];
  for (int k = 0; k < 4; ++k) {
    example.drawn.lengths[0] = lengths[k];
    refuse(&example, XLA_FFI_Error_Code_INVALID_ARGUMENT, "lengths[0] must be in [0, 40]", "value");
  }
  example.drawn.lengths[0] = right;
  memcpy(example.verdict, (int32_t[]){7, 2, 3, 20}, sizeof example.verdict);
  refuse(&example, XLA_FFI_Error_Code_OUT_OF_RANGE, "row 3 of chunk 7: s * A + a", "verdict");
  memcpy(example.verdict, (int32_t[]){7, 3, 3, 13}, sizeof example.verdict);
  refuse(&example, XLA_FFI_Error_Code_OUT_OF_RANGE, "s' * A must be in [0, 13), got 13", "verdict");
  memset(example.verdict, 0, sizeof example.verdict);
  example.drawn.slots[0] = -1;
  refuse(&example, XLA_FFI_Error_Code_OUT_OF_RANGE, "slots of runs must be in [0", "value");
  example.drawn.slots[0] = 0;
  example.drawn.records[0] = UINT32_MAX;
  if (!counts)
    refuse(&example, XLA_FFI_Error_Code_OUT_OF_RANGE, "indices of records must be in [0, 12)",
           "value");
  owned_free(&example.drawn);
}

int main(void) {
  for (int numerics = FP32; numerics <= POW2; ++numerics)
    for (int choice = 0; choice < ARL_CHOICES; ++choice)
      for (conduct_t conduct = THREADS; conduct <= LATE; ++conduct)
        for (int counts = 0; counts <= (choice == ARL_DRAWN_TABLE); ++counts) {
          const arl_choice drawn = (arl_choice)choice;
          const bool rotates = conduct % 2;
          test_right((owned_shape){numerics, drawn, rotates, 3, 70, 16, 3, 9, 2}, counts, conduct);
          test_right((owned_shape){numerics, drawn, rotates, 6, 9000, 16, 1, 99, 1}, counts,
                     conduct);
          test_right((owned_shape){numerics, drawn, rotates, 1, 1, 16, 0, 9, 2}, false, conduct);
        }
  stand_in_start(&stand_in, THREADS, 2);
  context = (XLA_FFI_ExecutionContext){.pool = stand_in_pool(&stand_in)};
  test_subnormal();
  for (int counts = 0; counts < 2; ++counts) {
    test_buffers(counts);
    test_attributes(counts);
    test_data(counts);
  }
  stand_in_stop(&stand_in);
  CHECK(living_errors() == 0, "%lld errors left", (long long)living_errors());
  return finish();
}
