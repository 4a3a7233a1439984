#include "frame.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#if XLA_FFI_API_MAJOR == 0 && XLA_FFI_API_MINOR < 4
typedef XLA_FFI_Extension_Base extension_t;
#else  // the host of DPUs is built with the headers of the jaxlib at hand
typedef XLA_FFI_InternalExtension extension_t;
#endif

bool arl_answer_metadata(XLA_FFI_CallFrame *frame) {
  extension_t *extension = frame->extension_start;
  if (!extension || extension->type != XLA_FFI_Extension_Metadata) return false;
  XLA_FFI_Metadata *metadata = ((XLA_FFI_Metadata_Extension *)extension)->metadata;
  metadata->api_version = (XLA_FFI_Api_Version){
      .struct_size = XLA_FFI_Api_Version_STRUCT_SIZE,
      .major_version = XLA_FFI_API_MAJOR,
      .minor_version = XLA_FFI_API_MINOR,
  };
  metadata->traits = 0;
  return true;
}

XLA_FFI_Error *arl_fail(const XLA_FFI_CallFrame *frame, XLA_FFI_Error_Code code, const char *format,
                        ...) {
  char message[512];
  va_list values;
  va_start(values, format);
  vsnprintf(message, sizeof message, format, values);
  va_end(values);
  XLA_FFI_Error_Create_Args arguments = {
      .struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE,
      .message = message,
      .errc = code,
  };
  return frame->api->XLA_FFI_Error_Create(&arguments);
}

static const XLA_FFI_Scalar *find_scalar(const XLA_FFI_Attrs *attrs, const char *name) {
  const size_t length = strlen(name);
  for (int64_t k = 0; k < attrs->size; ++k) {
    const XLA_FFI_ByteSpan *found = attrs->names[k];
    if (found->len == length && memcmp(found->ptr, name, length) == 0)
      return attrs->types[k] == XLA_FFI_AttrType_SCALAR ? attrs->attrs[k] : NULL;
  }
  return NULL;
}

XLA_FFI_Error *arl_read_attributes(const XLA_FFI_CallFrame *frame, const arl_attribute *attributes,
                                   int64_t count, int64_t *values) {
  for (int64_t k = 0; k < count; ++k) {
    const arl_attribute *wanted = attributes + k;
    const XLA_FFI_Scalar *scalar = find_scalar(&frame->attrs, wanted->name);
    if (!scalar || scalar->dtype != XLA_FFI_DataType_S64)
      return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                      "attribute %s must be given as a 64-bit integer", wanted->name);
    memcpy(values + k, scalar->value, sizeof *values);
    if (values[k] < wanted->least || values[k] > wanted->most)
      return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                      "attribute %s must be in [%lld, %lld], got %lld", wanted->name,
                      (long long)wanted->least, (long long)wanted->most, (long long)values[k]);
  }
  return NULL;
}

static XLA_FFI_Error *read_buffer(const XLA_FFI_CallFrame *frame, const arl_buffer *wanted,
                                  const XLA_FFI_Buffer *buffer, arl_sizes *sizes) {
  const XLA_FFI_Error_Code invalid = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  if (buffer->dtype != wanted->dtype)
    return arl_fail(frame, invalid, "%s must have XLA data type %d, got %d", wanted->name,
                    (int)wanted->dtype, (int)buffer->dtype);
  if (buffer->rank != (int64_t)strlen(wanted->shape))
    return arl_fail(frame, invalid, "%s must have %d axes [%s], got %lld", wanted->name,
                    (int)strlen(wanted->shape), wanted->shape, (long long)buffer->rank);
  for (int64_t axis = 0; axis < buffer->rank; ++axis) {
    const char letter = wanted->shape[axis];
    int64_t *known = sizes->of + letter;
    const bool digit = letter >= '0' && letter <= '9';
    if (!digit && *known < 0) *known = buffer->dims[axis];
    const int64_t size = digit ? letter - '0' : *known;
    if (buffer->dims[axis] != size)
      return arl_fail(frame, invalid, "%s [%s] must have size %lld in axis %lld, got %lld",
                      wanted->name, wanted->shape, (long long)size, (long long)axis,
                      (long long)buffer->dims[axis]);
  }
  return NULL;
}

XLA_FFI_Error *arl_read_buffers(const XLA_FFI_CallFrame *frame, const arl_buffer *buffers,
                                int64_t num_arguments, int64_t num_results, void **data,
                                arl_sizes *sizes) {
  if (frame->args.size != num_arguments || frame->rets.size != num_results)
    return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                    "takes %lld arguments and %lld results, got %lld and %lld",
                    (long long)num_arguments, (long long)num_results, (long long)frame->args.size,
                    (long long)frame->rets.size);
  for (size_t k = 0; k < sizeof sizes->of / sizeof *sizes->of; ++k) sizes->of[k] = -1;
  for (int64_t k = 0; k < num_arguments + num_results; ++k) {
    const XLA_FFI_Buffer *buffer =
        k < num_arguments ? frame->args.args[k] : frame->rets.rets[k - num_arguments];
    XLA_FFI_Error *error = read_buffer(frame, buffers + k, buffer, sizes);
    if (error) return error;
    data[k] = buffer->data;
  }
  return NULL;
}

static int is_error(const XLA_FFI_Api *api, XLA_FFI_Error *error) {
  if (!error) return 0;
  XLA_FFI_Error_Destroy_Args arguments = {
      .struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE,
      .error = error,
  };
  api->XLA_FFI_Error_Destroy(&arguments);
  return -1;
}

static int64_t num_threads(void *context) {
  const XLA_FFI_CallFrame *frame = context;
  int64_t count = 0;
  XLA_FFI_ThreadPool_NumThreads_Args arguments = {
      .struct_size = XLA_FFI_ThreadPool_NumThreads_Args_STRUCT_SIZE,
      .ctx = frame->ctx,
      .num_threads = &count,
  };
  return is_error(frame->api, frame->api->XLA_FFI_ThreadPool_NumThreads(&arguments)) ? 0 : count;
}

static int schedule(void *context, void (*task)(void *data), void *data) {
  const XLA_FFI_CallFrame *frame = context;
  XLA_FFI_ThreadPool_Schedule_Args arguments = {
      .struct_size = XLA_FFI_ThreadPool_Schedule_Args_STRUCT_SIZE,
      .ctx = frame->ctx,
      .task = task,
      .data = data,
  };
  return is_error(frame->api, frame->api->XLA_FFI_ThreadPool_Schedule(&arguments));
}

arl_pool arl_pool_of(XLA_FFI_CallFrame *frame) {
  return (arl_pool){.context = frame, .num_threads = num_threads, .schedule = schedule};
}
