#include "frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct XLA_FFI_Error {
  XLA_FFI_Error_Code code;
  char message[MOST_TEXT];
};

static int64_t living;

int64_t living_errors(void) { return living; }

static XLA_FFI_Error *create(XLA_FFI_Error_Create_Args *arguments) {
  XLA_FFI_Error *error = malloc(sizeof *error);
  if (!error || arguments->struct_size != XLA_FFI_Error_Create_Args_STRUCT_SIZE) abort();
  error->code = arguments->errc;
  snprintf(error->message, sizeof error->message, "%s", arguments->message);
  ++living;
  return error;
}

static void destroy(XLA_FFI_Error_Destroy_Args *arguments) {
  if (arguments->struct_size != XLA_FFI_Error_Destroy_Args_STRUCT_SIZE) abort();
  free(arguments->error);
  --living;
}

static XLA_FFI_Error *unavailable(void) {
  XLA_FFI_Error_Create_Args arguments = {.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE,
                                         .message = "no thread pool",
                                         .errc = XLA_FFI_Error_Code_UNAVAILABLE};
  return create(&arguments);
}

static XLA_FFI_Error *num_threads(XLA_FFI_ThreadPool_NumThreads_Args *arguments) {
  if (arguments->struct_size != XLA_FFI_ThreadPool_NumThreads_Args_STRUCT_SIZE) abort();
  const XLA_FFI_ExecutionContext *context = arguments->ctx;
  if (context->num_threads_fails) return unavailable();
  *arguments->num_threads = context->pool.num_threads(context->pool.context);
  return NULL;
}

static XLA_FFI_Error *schedule(XLA_FFI_ThreadPool_Schedule_Args *arguments) {
  if (arguments->struct_size != XLA_FFI_ThreadPool_Schedule_Args_STRUCT_SIZE) abort();
  const arl_pool *pool = &arguments->ctx->pool;
  return pool->schedule(pool->context, arguments->task, arguments->data) ? unavailable() : NULL;
}

static const XLA_FFI_Api api = {
    .struct_size = XLA_FFI_Api_STRUCT_SIZE,
    .XLA_FFI_Error_Create = create,
    .XLA_FFI_Error_Destroy = destroy,
    .XLA_FFI_ThreadPool_NumThreads = num_threads,
    .XLA_FFI_ThreadPool_Schedule = schedule,
};

static void add_buffer(call_t *call, XLA_FFI_DataType dtype, void *data, int64_t rank,
                       const int64_t *dims) {
  const int64_t at = call->num_arguments + call->num_results;
  if (at >= MOST_BUFFERS || rank > MOST_AXES) abort();
  call->buffers[at] = (XLA_FFI_Buffer){
      .struct_size = XLA_FFI_Buffer_STRUCT_SIZE, .dtype = dtype, .data = data, .rank = rank};
  for (int64_t axis = 0; axis < rank; ++axis) call->dims[at][axis] = dims[axis];
}

void call_argument(call_t *call, XLA_FFI_DataType dtype, void *data, int64_t rank,
                   const int64_t *dims) {
  add_buffer(call, dtype, data, rank, dims);
  ++call->num_arguments;
}

void call_result(call_t *call, XLA_FFI_DataType dtype, void *data, int64_t rank,
                 const int64_t *dims) {
  add_buffer(call, dtype, data, rank, dims);
  ++call->num_results;
}

// XLA hands attributes over in the order of their names.
void call_attribute(call_t *call, const char *name, int64_t value) {
  int64_t at = call->num_attributes++;
  if (at >= MOST_ATTRIBUTES) abort();
  for (; at > 0 && strcmp(call->names[at - 1], name) > 0; --at) {
    call->names[at] = call->names[at - 1];
    call->values[at] = call->values[at - 1];
  }
  call->names[at] = name;
  call->values[at] = value;
  call->types[call->num_attributes - 1] = XLA_FFI_AttrType_SCALAR;
  call->dtypes[call->num_attributes - 1] = XLA_FFI_DataType_S64;
}

int64_t call_find(const call_t *call, const char *name) {
  for (int64_t k = 0; k < call->num_attributes; ++k)
    if (strcmp(call->names[k], name) == 0) return k;
  abort();
}

reply_t call_make(call_t *call, XLA_FFI_Handler *handler) {
  void *buffers[MOST_BUFFERS], *attributes[MOST_ATTRIBUTES];
  XLA_FFI_ArgType argument_types[MOST_BUFFERS];
  XLA_FFI_RetType result_types[MOST_BUFFERS];
  XLA_FFI_ByteSpan spans[MOST_ATTRIBUTES], *names[MOST_ATTRIBUTES];
  XLA_FFI_Scalar scalars[MOST_ATTRIBUTES];
  for (int64_t k = 0; k < call->num_arguments + call->num_results; ++k) {
    call->buffers[k].dims = call->dims[k];
    buffers[k] = call->buffers + k;
    argument_types[k] = XLA_FFI_ArgType_BUFFER;
    result_types[k] = XLA_FFI_RetType_BUFFER;
  }
  for (int64_t k = 0; k < call->num_attributes; ++k) {
    spans[k] = (XLA_FFI_ByteSpan){call->names[k], strlen(call->names[k])};
    names[k] = spans + k;
    scalars[k] = (XLA_FFI_Scalar){call->dtypes[k], call->values + k};
    attributes[k] = scalars + k;
  }
  XLA_FFI_CallFrame frame = {
      .struct_size = XLA_FFI_CallFrame_STRUCT_SIZE,
      .api = &api,
      .ctx = call->context,
      .stage = XLA_FFI_ExecutionStage_EXECUTE,
      .args = {XLA_FFI_Args_STRUCT_SIZE, NULL, call->num_arguments, argument_types, buffers},
      .rets = {XLA_FFI_Rets_STRUCT_SIZE, NULL, call->num_results, result_types,
               buffers + call->num_arguments},
      .attrs = {XLA_FFI_Attrs_STRUCT_SIZE, NULL, call->num_attributes, call->types, names,
                attributes},
  };
  reply_t reply = {.code = XLA_FFI_Error_Code_OK};
  XLA_FFI_Error *error = handler(&frame);
  if (error) {
    reply.code = error->code;
    memcpy(reply.message, error->message, sizeof reply.message);
    free(error);
    --living;
  }
  return reply;
}
