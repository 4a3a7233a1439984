// Right and wrong calls of the handlers of merges. Included once in a test, which counts its
// checks.

#ifndef ACCEL_RL_TESTS_MERGE_CALLS_H
#define ACCEL_RL_TESTS_MERGE_CALLS_H

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "check.h"
#include "frames.h"
#include "merge.h"

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

static void check_refused(const call_t *wrong, XLA_FFI_Handler *handler, XLA_FFI_Error_Code code,
                          const char *what, int64_t k) {
  call_t call = *wrong;
  const reply_t reply = call_make(&call, handler);
  CHECK(reply.code == code && reply.message[0], "%s of buffer %lld: code %d: %s", what,
        (long long)k, (int)reply.code, reply.message);
}

// Refusals of buffer k in other data types, ranks and, but for one axis, sizes.
static void check_buffer(const call_t *right, XLA_FFI_Handler *handler, int64_t k,
                         int64_t free_axis) {
  for (int dtype = 0; dtype <= 33; ++dtype) {
    call_t wrong = *right;
    wrong.buffers[k].dtype = (XLA_FFI_DataType)dtype;
    if (wrong.buffers[k].dtype != right->buffers[k].dtype)
      check_refused(&wrong, handler, XLA_FFI_Error_Code_INVALID_ARGUMENT, "data type", k);
  }
  for (int64_t rank = 0; rank <= MOST_AXES; ++rank) {
    call_t wrong = *right;
    wrong.buffers[k].rank = rank;
    if (rank != right->buffers[k].rank)
      check_refused(&wrong, handler, XLA_FFI_Error_Code_INVALID_ARGUMENT, "rank", k);
  }
  for (int64_t axis = 0; axis < right->buffers[k].rank; ++axis) {
    if (axis == free_axis) continue;
    const int64_t sizes[] = {0, right->dims[k][axis] + 1, INT64_MAX};
    for (int i = 0; i < 3; ++i) {
      call_t wrong = *right;
      wrong.dims[k][axis] = sizes[i];
      if (sizes[i] != right->dims[k][axis])
        check_refused(&wrong, handler, XLA_FFI_Error_Code_INVALID_ARGUMENT, "size", k);
    }
  }
}

// Refusals of other numbers of buffers, and of other merges.
static void check_attributes(const call_t *right, XLA_FFI_Handler *handler) {
  const XLA_FFI_Error_Code invalid = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  for (int64_t more = -1; more <= 1; more += 2) {
    call_t wrong = *right;
    wrong.num_arguments += more;
    check_refused(&wrong, handler, invalid, "number", right->num_arguments);
    wrong = *right;
    wrong.num_results += more;
    check_refused(&wrong, handler, invalid, "number", right->num_arguments);
  }
  const int64_t merges[] = {-1, ARL_MERGES, INT64_MIN, INT64_MAX};
  for (int k = 0; k < 4; ++k) {
    call_t wrong = *right;
    wrong.values[0] = merges[k];
    check_refused(&wrong, handler, invalid, "merge", -1);
  }
  call_t wrong = *right;
  wrong.num_attributes = 0;
  check_refused(&wrong, handler, invalid, "absence of the merge", -1);
}

static void check_metadata(XLA_FFI_Handler *handler) {
  XLA_FFI_Metadata metadata = {.struct_size = XLA_FFI_Metadata_STRUCT_SIZE, .traits = 99};
  XLA_FFI_Metadata_Extension extension = {
      .extension_base = {XLA_FFI_Metadata_Extension_STRUCT_SIZE, XLA_FFI_Extension_Metadata, NULL},
      .metadata = &metadata,
  };
  XLA_FFI_CallFrame frame = {.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE,
                             .extension_start = &extension.extension_base};
  CHECK(handler(&frame) == NULL && metadata.traits == 0, "traits %u", metadata.traits);
}

#endif
