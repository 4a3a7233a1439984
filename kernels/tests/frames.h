// Calls of XLA FFI handlers without XLA: frames built by hand, and an interface that keeps errors.

#ifndef ACCEL_RL_TESTS_FRAMES_H
#define ACCEL_RL_TESTS_FRAMES_H

#include "pool.h"
#include "xla/ffi/api/c_api.h"

enum { MOST_BUFFERS = 14, MOST_AXES = 5, MOST_ATTRIBUTES = 12, MOST_TEXT = 512 };

// Where XLA would keep its thread pool.
struct XLA_FFI_ExecutionContext {
  arl_pool pool;
  int num_threads_fails;  // asking for the number of threads is an error
};

// A call; every part may be changed before it is made.
typedef struct {
  XLA_FFI_ExecutionContext *context;
  int64_t num_arguments, num_results, num_attributes;
  XLA_FFI_Buffer buffers[MOST_BUFFERS];  // arguments, then results
  int64_t dims[MOST_BUFFERS][MOST_AXES];
  const char *names[MOST_ATTRIBUTES];
  XLA_FFI_AttrType types[MOST_ATTRIBUTES];
  XLA_FFI_DataType dtypes[MOST_ATTRIBUTES];
  int64_t values[MOST_ATTRIBUTES];
} call_t;

// What a handler returned: OK, or an error that has been destroyed since.
typedef struct {
  XLA_FFI_Error_Code code;
  char message[MOST_TEXT];
} reply_t;

// Add a buffer, before which all arguments and no other results were added; or an attribute.
void call_argument(call_t *call, XLA_FFI_DataType dtype, void *data, int64_t rank,
                   const int64_t *dims);
void call_result(call_t *call, XLA_FFI_DataType dtype, void *data, int64_t rank,
                 const int64_t *dims);
void call_attribute(call_t *call, const char *name, int64_t value);

// The index of an attribute.
int64_t call_find(const call_t *call, const char *name);

reply_t call_make(call_t *call, XLA_FFI_Handler *handler);

// Errors that were created and not destroyed.
int64_t living_errors(void);

#endif
