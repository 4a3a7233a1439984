// Thousands of calls with drawn sizes, types, attributes and rows. Buffers are as large as the call
// says, to the byte. A call may work, or be refused and write nothing; sanitizers watch for more.

#include <string.h>

#include "check.h"
#include "example.h"

enum { ROUNDS = 50000, MARK = 0xC3 };

static uint64_t state = 0xF022ull;

static int64_t threads(void *context) { return (void)context, 0; }
static XLA_FFI_ExecutionContext context = {.pool = {.num_threads = threads}};

static int64_t draw(int64_t least, int64_t most) { return random_between(&state, least, most); }

// A right call as far as sizes, types and attributes go; it has no memory yet.
static call_t draw_call(handler_t which) {
  const signature_t *signature = signatures + which;
  const int64_t rule = draw(0, RULES - 1), numerics = draw(FP32, POW2), actions = draw(1, 6);
  const int64_t size = draw(1, 4) * actions;
  int64_t sizes['Z' + 1] = {['D'] = draw(0, 3), ['T'] = draw(0, 5), ['R'] = draw(0, 3)};
  sizes['G'] = draw(0, 1) ? sizes['D'] : 1;
  if (draw(0, 9) == 0) sizes['R'] = draw(60, 70);
  if (draw(0, 9) == 0) sizes['T'] = draw(120, 260);
  sizes['E'] = size * truth_tables((int)rule);
  call_t call = {.context = &context};
  for (int64_t k = 0; k < signature->num_buffers; ++k) {
    const char *shape = signature->buffers[k].shape;
    int64_t dims[MOST_AXES];
    for (size_t axis = 0; axis < strlen(shape); ++axis)
      dims[axis] = shape[axis] <= '9' ? shape[axis] - '0' : sizes[(int)shape[axis]];
    const bool is_entry = strchr(shape, 'R') != NULL;
    const bool is_signed = is_entry || k < 2 || strcmp(shape, "14") == 0;
    const XLA_FFI_DataType dtype = is_entry && numerics == FP32 ? XLA_FFI_DataType_F32
                                   : is_signed                  ? XLA_FFI_DataType_S32
                                                                : XLA_FFI_DataType_U32;
    if (k + 1 < signature->num_buffers)
      call_argument(&call, dtype, NULL, (int64_t)strlen(shape), dims);
    else
      call_result(&call, dtype, NULL, (int64_t)strlen(shape), dims);
  }
  call_attribute(&call, "num_actions", actions);
  if (which == EXAMINE) {
    call_attribute(&call, "size", size);
    return call;
  }
  call_attribute(&call, "rule", rule);
  call_attribute(&call, "order", draw(0, ORDERS - 1));
  call_attribute(&call, "stride", draw(1, 9));
  call_attribute(&call, "target_block", draw(1, 9));
  call_attribute(&call, "num_passes", draw(0, 3));
  if (which == LAUNCH) call_attribute(&call, "numerics", numerics);
  return call;
}

// Change one thing. Numbers of passes remain few, so that calls end.
static void mutate(call_t *call) {
  static const int64_t values[] = {0,  1,         2,        3, 5, 65536, 65537, INT64_C(1) << 31,
                                   -1, INT64_MIN, INT64_MAX};
  XLA_FFI_Buffer *buffer = call->buffers + draw(0, call->num_arguments + call->num_results - 1);
  const int64_t at = draw(0, call->num_attributes - 1);
  const bool is_passes = strcmp(call->names[at], "num_passes") == 0;
  switch (draw(0, 7)) {
    case 0:
      buffer->dtype = (XLA_FFI_DataType)draw(0, 33);
      break;
    case 1:
      buffer->rank = draw(0, MOST_AXES);
      break;
    case 2:
    case 3:
      call->dims[buffer - call->buffers][draw(0, MOST_AXES - 1)] = draw(0, 8);
      break;
    case 4:
    case 5:
      call->values[at] = values[is_passes ? draw(0, 4) : draw(0, 10)];
      break;
    case 6:
      if (draw(0, 1))
        call->types[at] = (XLA_FFI_AttrType)draw(1, 4);
      else
        call->dtypes[at] = (XLA_FFI_DataType)draw(0, 33);
      break;
    default:
      call->num_arguments -= draw(0, 2) == 0;
      call->num_attributes -= call->num_attributes > 1 && draw(0, 2) == 0;
  }
}

static size_t bytes_of(const call_t *call, int64_t k) {
  const XLA_FFI_DataType dtype = call->buffers[k].dtype;
  size_t bytes = dtype == XLA_FFI_DataType_S32 || dtype == XLA_FFI_DataType_U32 ||
                         dtype == XLA_FFI_DataType_F32
                     ? 4
                     : 1;  // no handler may look at any other
  for (int64_t axis = 0; axis < call->buffers[k].rank; ++axis) bytes *= (size_t)call->dims[k][axis];
  return bytes;
}

static int64_t attribute(const call_t *call, const char *name) {
  for (int64_t k = 0; k < call->num_attributes; ++k)
    if (strcmp(call->names[k], name) == 0) return call->values[k];
  return -1;
}

// Rows within tables of `size` entries, and now and then one that is not.
static void fill_rows(uint32_t *words, size_t count, int64_t size, int64_t actions) {
  const int64_t faults = draw(0, 3) == 0;
  for (size_t k = 0; k + 4 <= count; k += 4) {
    words[k] = (uint32_t)draw(0, size - 1);
    words[k + 1] = (uint32_t)(draw(0, size / actions - 1) * actions);
    words[k + 2] = (uint32_t)draw(0, 1000);
    words[k + 3] = (uint32_t)(draw(0, actions - 1) | draw(0, 1) << 16);
    if (faults && draw(0, 20) == 0) words[k + (size_t)draw(0, 1)] = (uint32_t)random_bits(&state);
    if (faults && draw(0, 20) == 0) words[k + 3] = (uint32_t)random_bits(&state);
  }
}

// What an examination of the call's rows must find: DPU, kind, row and value of the first fault.
// `verdict` holds zeros.
static void examine(const call_t *call, int64_t size, int64_t actions, int32_t verdict[4]) {
  const int32_t *rows = call->buffers[0].data, *lengths = call->buffers[1].data;
  const int32_t *dpus = call->buffers[2].data;
  const int64_t capacity = call->dims[0][1];
  for (int64_t d = 0; d < call->dims[0][0]; ++d) {
    if (lengths[d] < 0 || lengths[d] > capacity) {
      memcpy(verdict, (int32_t[]){dpus[d], 1, 0, lengths[d]}, 4 * sizeof *verdict);
      return;
    }
    for (int32_t t = 0; t < lengths[d]; ++t) {
      const int32_t *row = rows + (d * capacity + t) * 4;
      const int32_t values[] = {row[0], row[1], row[3] & 0xFFFF};
      const int64_t limits[] = {size, size - actions + 1, actions};
      for (int32_t k = 0; k < 3; ++k)
        if (values[k] < 0 || values[k] >= limits[k]) {
          memcpy(verdict, (int32_t[]){dpus[d], 2 + k, t, values[k]}, 4 * sizeof *verdict);
          return;
        }
    }
  }
}

static void fill_small(const call_t *call, int64_t k, uint32_t *words, size_t count) {
  const int numerics = call->buffers[k].dtype == XLA_FFI_DataType_F32 ? FP32 : POW2;
  for (size_t w = 0; w < count; ++w) words[w] = truth_bits(numerics, (double)draw(0, 256));
}

static void fill_lengths(const call_t *call, uint32_t *words, size_t count) {
  const int64_t capacity = call->dims[0][1];
  for (size_t d = 0; d < count; ++d)
    words[d] = (uint32_t)(draw(0, 20) ? draw(0, capacity) : draw(-1, capacity + 1));
}

static bool has_shape(const call_t *call, int64_t k, XLA_FFI_DataType dtype, const char *shape) {
  const XLA_FFI_Buffer *buffer = call->buffers + k;
  bool has = buffer->dtype == dtype && buffer->rank == (int64_t)strlen(shape);
  for (int64_t axis = 0; has && axis < buffer->rank; ++axis)
    has = call->dims[k][axis] == (shape[axis] == 'D'   ? call->dims[0][0]
                                  : shape[axis] == 'T' ? call->dims[0][1]
                                                       : shape[axis] - '0');
  return has;
}

// Give the call's buffers exactly their memory; empty ones may have no address at all. `verdict` is
// what an examination must find, and what launch and visits are told that it found.
static void fill(handler_t which, call_t *call, int32_t verdict[4]) {
  const int64_t actions = attribute(call, "num_actions"), result = call->num_arguments;
  int64_t size = attribute(call, "size");
  if (which != EXAMINE)
    size = call->dims[result][which == LAUNCH ? 2 : 1] / truth_tables((int)attribute(call, "rule"));
  for (int64_t k = 0; k < call->num_arguments + call->num_results; ++k) {
    const size_t bytes = bytes_of(call, k), count = bytes / 4;
    uint32_t *words = bytes == 0 && draw(0, 1) ? NULL : must_allocate(bytes);
    call->buffers[k].data = words;
    if (bytes == 0) continue;
    memset(words, 0, bytes);
    if (k == result)
      memset(words, MARK, bytes);
    else if (k == 0 && actions >= 1 && size >= actions)
      fill_rows(words, count, size, actions);
    else if (k == 1)
      fill_lengths(call, words, count);
    else
      fill_small(call, k, words, count);
  }
  memset(verdict, 0, 4 * sizeof *verdict);
  if (call->num_arguments >= 3 && actions >= 1 && actions <= 65536 && size >= 0 &&
      size <= INT32_MAX && has_shape(call, 0, XLA_FFI_DataType_S32, "DT4") &&
      has_shape(call, 1, XLA_FFI_DataType_S32, "D") &&
      has_shape(call, 2, XLA_FFI_DataType_U32, "D"))
    examine(call, size, actions, verdict);
  if (which != EXAMINE && result > 3 && has_shape(call, 3, XLA_FFI_DataType_S32, "14"))
    memcpy(call->buffers[3].data, verdict, 4 * sizeof *verdict);
}

static bool is_marked(const call_t *call) {
  const uint8_t *bytes = call->buffers[call->num_arguments].data;
  for (size_t k = 0; k < bytes_of(call, call->num_arguments); ++k)
    if (bytes[k] != MARK) return false;
  return true;
}

static void fuzz(handler_t which) {
  int64_t accepted = 0, refused = 0;
  for (int round = 0; round < ROUNDS; ++round) {
    int32_t verdict[4];
    call_t call = draw_call(which);
    const int64_t changes = draw(0, 3);
    for (int64_t k = 0; k < changes; ++k) mutate(&call);
    fill(which, &call, verdict);
    const reply_t reply = call_make(&call, signatures[which].handler);
    const bool is_refused = reply.code == XLA_FFI_Error_Code_INVALID_ARGUMENT ||
                            reply.code == XLA_FFI_Error_Code_OUT_OF_RANGE;
    CHECK(reply.code == XLA_FFI_Error_Code_OK || is_refused, "handler %d, round %d: code %d",
          (int)which, round, (int)reply.code);
    CHECK(!is_refused || (strlen(reply.message) > 10 && is_marked(&call)),
          "handler %d, round %d, refused but written: %s", (int)which, round, reply.message);
    const void *result = call.buffers[call.num_arguments].data;
    CHECK(is_refused ||
              (which == EXAMINE ? memcmp(result, verdict, sizeof verdict) == 0 : verdict[1] == 0),
          "handler %d, round %d, verdict %d, %d, %d, %d", (int)which, round, verdict[0], verdict[1],
          verdict[2], verdict[3]);
    CHECK(changes > 0 || is_refused == (which != EXAMINE && verdict[1] != 0),
          "handler %d, round %d, fault %d: %s", (int)which, round, verdict[1], reply.message);
    accepted += !is_refused;
    refused += is_refused;
    for (int64_t k = 0; k < MOST_BUFFERS; ++k) free(call.buffers[k].data);
  }
  printf("handler %d: %lld accepted, %lld refused\n", (int)which, (long long)accepted,
         (long long)refused);
  CHECK(accepted > ROUNDS / 5 && refused > ROUNDS / 5, "handler %d", (int)which);
}

int main(void) {
  for (int which = 0; which < HANDLERS; ++which) fuzz((handler_t)which);
  CHECK(living_errors() == 0, "%lld errors left", (long long)living_errors());
  return finish();
}
