// What a handler needs of XLA's foreign-function interface, in C: so that building it takes no C++
// compiler. A handler answers a request for metadata, reads attributes, reads buffers against a
// signature, and returns NULL or an error.

#ifndef ACCEL_RL_FFI_FRAME_H
#define ACCEL_RL_FFI_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "pool.h"
#include "xla/ffi/api/c_api.h"

// A buffer of a handler's signature. Each character of `shape` is one axis: a digit is its size, a
// letter stands for a size that all buffers of a call share. "" is a scalar.
typedef struct {
  const char *name;
  XLA_FFI_DataType dtype;
  const char *shape;
} arl_buffer;

// An integer attribute and its limits.
typedef struct {
  const char *name;
  int64_t least, most;
} arl_attribute;

// Sizes by letter, 'A' to 'Z'; -1 where no buffer has the letter.
typedef struct {
  int64_t of['Z' + 1];
} arl_sizes;

// Whether the call asks only for metadata; then it has been answered.
bool arl_answer_metadata(XLA_FFI_CallFrame *frame);

// Read `count` attributes into `values`.
XLA_FFI_Error *arl_read_attributes(const XLA_FFI_CallFrame *frame, const arl_attribute *attributes,
                                   int64_t count, int64_t *values);

// Check the call's buffers against `num_arguments` arguments followed by `num_results` results, and
// return their addresses in `data` and their sizes.
XLA_FFI_Error *arl_read_buffers(const XLA_FFI_CallFrame *frame, const arl_buffer *buffers,
                                int64_t num_arguments, int64_t num_results, void **data,
                                arl_sizes *sizes);

// An error that says what was wrong, printed as printf does.
XLA_FFI_Error *arl_fail(const XLA_FFI_CallFrame *frame, XLA_FFI_Error_Code code, const char *format,
                        ...) __attribute__((format(printf, 3, 4)));

// XLA's thread pool; good while the call lasts.
arl_pool arl_pool_of(XLA_FFI_CallFrame *frame);

#endif
