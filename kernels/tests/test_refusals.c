// Wrong calls of the handlers: each is refused by a message that names what is wrong, and leaves
// the result as it was.

#include <string.h>

#include "check.h"
#include "example.h"

enum { CAPACITY = 4 };

// The limits of attributes, and values beside them.
static const struct {
  const char *name;
  int64_t least, most;
} limits[] = {
    {"rule", 0, 4},
    {"order", 0, 3},
    {"stride", 1, 2147483647},
    {"target_block", 1, 2147483647},
    {"num_actions", 1, 65536},
    {"num_passes", 0, 2147483647},
    {"numerics", 1, 3},
    {"size", 1, 2147483647},
};
enum { LIMITS = sizeof limits / sizeof *limits };

static uint64_t state = 0xBADull;

static int64_t threads(void *context) { return (void)context, 0; }
static XLA_FFI_ExecutionContext context = {.pool = {.num_threads = threads}};

static void make(example_t *example, handler_t which, int numerics, int rule) {
  const int32_t lengths[CHUNKS] = {CAPACITY, 1, 3};
  example_make(example, which, example_program(numerics, rule), CAPACITY, lengths, 2, &context,
               &state);
}

// The call as it is now is refused, with one of the words in the message.
static void refuse(example_t *example, XLA_FFI_Error_Code code, const char *const *words, int count,
                   const char *what) {
  const reply_t reply = example_call(example);
  bool is_named = false;
  for (int k = 0; k < count; ++k) is_named |= strstr(reply.message, words[k]) != NULL;
  CHECK(reply.code == code && is_named, "handler %d, %s of %s: code %d: %s", (int)example->which,
        what, words[0], (int)reply.code, reply.message);
  CHECK(example_is_marked(example), "handler %d, %s of %s: the result is written",
        (int)example->which, what, words[0]);
}

static void refuse_argument(example_t *example, const char *word, const char *what) {
  refuse(example, XLA_FFI_Error_Code_INVALID_ARGUMENT, &word, 1, what);
}

static void test_axis(example_t *example, int64_t k, int64_t axis) {
  const signature_t *signature = signatures + example->which;
  const char *names[MOST_BUFFERS], letter = signature->buffers[k].shape[axis];
  int count = 0;
  for (int64_t other = 0; other < signature->num_buffers; ++other)
    if (strchr(signature->buffers[other].shape, letter))
      names[count++] = signature->buffers[other].name;
  if (count == 1 && letter > '9') return;  // no other buffer to disagree with
  const int64_t size = example->call.dims[k][axis], sizes[] = {0, size - 1, size + 1, INT64_MAX};
  for (int i = 0; i < 4; ++i) {
    example->call.dims[k][axis] = sizes[i];
    refuse(example, XLA_FFI_Error_Code_INVALID_ARGUMENT, names, count, "an axis");
  }
  example->call.dims[k][axis] = size;
}

static void test_buffers(handler_t which) {
  const signature_t *signature = signatures + which;
  example_t example;
  make(&example, which, POW2, SARSA);
  const call_t right = example.call;
  for (int64_t k = 0; k < signature->num_buffers; ++k) {
    const char *name = signature->buffers[k].name;
    for (int dtype = 0; dtype <= 33; ++dtype) {
      example.call.buffers[k].dtype = (XLA_FFI_DataType)dtype;
      if (example.call.buffers[k].dtype != right.buffers[k].dtype)
        refuse_argument(&example, name, "data type");
    }
    example.call = right;
    for (int64_t rank = 0; rank <= MOST_AXES; ++rank) {
      example.call.buffers[k].rank = rank;
      if (rank != right.buffers[k].rank) refuse_argument(&example, name, "rank");
    }
    example.call = right;
    for (int64_t axis = 0; axis < right.buffers[k].rank; ++axis) test_axis(&example, k, axis);
  }
  for (int more = -1; more <= 1; more += 2) {
    example.call.num_arguments = right.num_arguments + more;
    refuse_argument(&example, "arguments", "number");
    example.call = right;
    example.call.num_results = right.num_results + more;
    refuse_argument(&example, "results", "number");
    example.call = right;
  }
  example_free(&example);
}

static void test_attribute(example_t *example, int64_t at, const char *name, int64_t least,
                           int64_t most) {
  const call_t right = example->call;
  call_t *call = &example->call;
  const int64_t values[] = {least - 1, most + 1, INT64_MIN, INT64_MAX};
  for (int i = 0; i < 4; ++i) {
    call->values[at] = values[i];
    refuse_argument(example, name, "value");
  }
  *call = right;
  for (int type = XLA_FFI_AttrType_ARRAY; type <= XLA_FFI_AttrType_STRING; ++type) {
    call->types[at] = (XLA_FFI_AttrType)type;
    if (type != XLA_FFI_AttrType_SCALAR) refuse_argument(example, name, "kind");
  }
  *call = right;
  for (int dtype = 0; dtype <= 33; ++dtype) {
    call->dtypes[at] = (XLA_FFI_DataType)dtype;
    if (dtype != XLA_FFI_DataType_S64) refuse_argument(example, name, "data type");
  }
  *call = right;
  char longer[32], shorter[32];
  snprintf(longer, sizeof longer, "%ss", name);
  snprintf(shorter, sizeof shorter, "%.*s", (int)strlen(name) - 1, name);
  call->names[at] = longer;
  refuse_argument(example, name, "absence");
  call->names[at] = shorter;
  refuse_argument(example, name, "absence");
  *call = right;
}

static void test_attributes(handler_t which) {
  example_t example;
  make(&example, which, FP32, Q_LEARNING);
  for (int64_t at = 0; at < example.call.num_attributes; ++at) {
    int k = 0;
    while (k < LIMITS && strcmp(limits[k].name, example.call.names[at]) != 0) ++k;
    CHECK(k < LIMITS, "no limits of %s", example.call.names[at]);
    if (k < LIMITS) test_attribute(&example, at, limits[k].name, limits[k].least, limits[k].most);
  }
  example.call.num_attributes = 0;
  refuse_argument(&example, "attribute", "absence");
  example_free(&example);
}

// Examine finds a fault: the DPU, the kind of fault, the row and the value.
static void expect(example_t *example, int dpu, int fault, int row, int value) {
  const reply_t reply = example_call(example);
  const int32_t *verdict = (const int32_t *)example->result;
  CHECK(reply.code == XLA_FFI_Error_Code_OK, "examine: %s", reply.message);
  CHECK(verdict[0] == (int32_t)example->scenario.dpus[dpu] && verdict[1] == fault &&
            verdict[2] == row && verdict[3] == value,
        "fault %d, value %d in chunk %d, row %d: found %d, %d in row %d", fault, value, dpu, row,
        verdict[1], verdict[3], verdict[2]);
}

static void test_lengths(handler_t which) {
  const int32_t wrong[] = {-1, CAPACITY + 1, INT32_MIN, INT32_MAX};
  example_t example;
  make(&example, which, FP32, Q_LEARNING);
  for (int d = 0; d < CHUNKS; ++d)
    for (int k = 0; k < 4; ++k) {
      char name[32];
      snprintf(name, sizeof name, "lengths[%d]", d);
      const int32_t right = example.scenario.lengths[d];
      example.scenario.lengths[d] = wrong[k];
      if (which == EXAMINE)
        expect(&example, d, 1, 0, wrong[k]);
      else
        refuse_argument(&example, name, "value");
      example.scenario.lengths[d] = right;
    }
  example_free(&example);
}

// Tables that do not hold whole states, and chunks longer than their order or a length can say.
static void test_sizes(handler_t which) {
  example_t example;
  make(&example, which, FP32, DOUBLE_Q_LEARNING);
  const call_t right = example.call;
  call_t *call = &example.call;
  const int64_t result = call->num_arguments, entries[] = {0, 4, 39, 44, INT64_C(1) << 31};
  for (int k = 0; k < 5; ++k) {
    if (which == LAUNCH) call->dims[4][2] = entries[k];
    call->dims[result][which == LAUNCH ? 2 : 1] = entries[k];
    refuse_argument(&example, "entries", "number");
  }
  *call = right;
  for (int64_t starts = 0; which == LAUNCH && starts <= CHUNKS + 1; ++starts) {
    call->dims[4][1] = starts;
    if (starts != 1 && starts != CHUNKS) refuse_argument(&example, "each of 3 chunks", "number");
  }
  *call = right;
  memset(example.scenario.lengths, 0, sizeof example.scenario.lengths);
  call->dims[0][1] = 65536 * 128 + 1;
  refuse_argument(&example, "8388608 rows", "number");
  call->values[call_find(call, "order")] = STR;
  call->dims[0][1] = INT64_C(1) << 31;
  refuse_argument(&example, "2147483647 rows", "number");
  call->dims[0][1] = 65536 * 128 + 1;
  CHECK(example_call(&example).code == XLA_FFI_Error_Code_OK, "long chunks of rows in order");
  example_free(&example);
}

// Examine finds the first row whose indices lie outside the tables, wherever it is.
static void test_rows(void) {
  const uint32_t size = 20, actions = 4;
  const struct {
    arl_wide_row row;
    int fault, value;
  } wrong[] = {
      {{size, 0, 0, 0}, 2, 20},
      {{0xFFFFFFFF, 0, 0, 0}, 2, -1},
      {{0x80000000, 0, 0, 0}, 2, INT32_MIN},
      {{0, size, 0, 0}, 3, 20},
      {{0, size - actions + 1, 0, 0}, 3, 17},
      {{0, 0xFFFFFFFF, 0, 0}, 3, -1},
      {{0, 0, 0, actions}, 4, 4},
      {{0, 0, 0, 0xFFFFFFFF}, 4, 65535},
      {{0, 0, 0, actions | 1u << 16}, 4, 4},
  };
  example_t example;
  make(&example, EXAMINE, FP32, Q_LEARNING);
  arl_wide_row *rows = example.scenario.rows, *last = rows + (CHUNKS - 1) * CAPACITY + 2;
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; ++k)
    for (int d = 0; d < CHUNKS; ++d)
      for (int t = 0; t < example.scenario.lengths[d]; ++t) {
        arl_wide_row *row = rows + d * CAPACITY + t, right = *row, right_last = *last;
        *last = wrong[0].row;
        *row = wrong[k].row;
        expect(&example, d, wrong[k].fault, t, wrong[k].value);
        *last = right_last;
        *row = right;
      }
  for (int t = 0; t < CAPACITY; ++t)
    rows[t] = (arl_wide_row){size - 1, size - actions, 0xFFFFFFFF, (actions - 1) | 0xFFFF0000};
  CHECK(example_call(&example).code == XLA_FFI_Error_Code_OK, "rows at the end of the tables");
  CHECK(example_is_right(&example), "rows at the end of the tables");
  example_free(&example);
}

// Launch and visits refuse what examine found fault with, in words.
static void test_verdicts(handler_t which) {
  const struct {
    int32_t verdict[4];
    XLA_FFI_Error_Code code;
    const char *word;
  } wrong[] = {
      {{7, 1, 0, -5}, XLA_FFI_Error_Code_OUT_OF_RANGE, "chunk 7 must be in [0, 4], got -5"},
      {{8, 2, 3, 20}, XLA_FFI_Error_Code_OUT_OF_RANGE, "row 3 of chunk 8: s * A + a"},
      {{9, 3, 2, 17}, XLA_FFI_Error_Code_OUT_OF_RANGE, "s' * A must be in [0, 17), got 17"},
      {{9, 4, 2, 4}, XLA_FFI_Error_Code_OUT_OF_RANGE, "a' must be in [0, 4), got 4"},
      {{0, 5, 0, 0}, XLA_FFI_Error_Code_INVALID_ARGUMENT, "verdict"},
      {{0, -1, 0, 0}, XLA_FFI_Error_Code_INVALID_ARGUMENT, "verdict"},
      {{0, INT32_MAX, 0, 0}, XLA_FFI_Error_Code_INVALID_ARGUMENT, "verdict"},
      {{0, INT32_MIN, 0, 0}, XLA_FFI_Error_Code_INVALID_ARGUMENT, "verdict"},
  };
  example_t example;
  make(&example, which, SCALED, EXPECTED_SARSA);
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; ++k) {
    memcpy(example.verdict, wrong[k].verdict, sizeof example.verdict);
    refuse(&example, wrong[k].code, &wrong[k].word, 1, "a verdict");
  }
  example_free(&example);
}

// A table of 20 entries holds no whole states of so many actions.
static void test_table_of_rows(void) {
  const int64_t wrong[] = {3, 19, 21, 65536};
  example_t example;
  make(&example, EXAMINE, FP32, Q_LEARNING);
  for (int k = 0; k < 4; ++k) {
    example.call.values[call_find(&example.call, "num_actions")] = wrong[k];
    refuse_argument(&example, "size", "number");
  }
  example_free(&example);
}

int main(void) {
  for (int which = 0; which < HANDLERS; ++which) {
    test_buffers((handler_t)which);
    test_attributes((handler_t)which);
    test_lengths((handler_t)which);
    if (which == EXAMINE) continue;
    test_sizes((handler_t)which);
    test_verdicts((handler_t)which);
  }
  test_rows();
  test_table_of_rows();
  CHECK(living_errors() == 0, "%lld errors left", (long long)living_errors());
  return finish();
}
