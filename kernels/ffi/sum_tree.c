// XLA FFI handlers of the sum tree of prioritised replay; accel_rl/replay/sum_tree_native.py calls
// them.

#include "sum_tree.h"

#include <string.h>

#include "frame.h"

#define ARL_EXPORT __attribute__((visibility("default")))

#define S32 XLA_FFI_DataType_S32
#define U32 XLA_FFI_DataType_U32
#define F32 XLA_FFI_DataType_F32

enum {
  MOST_BUFFERS = 10,
  SMALL = 1 << 14,  // nodes: below this a call is not worth another thread's while
};

#define MOST_LEAVES (INT64_C(1) << 30)

// The state, in the order of its operands.
enum { LEAVES, HEAP, TOTAL, HIGHEST, FIELDS };
#define SUMS {"leaves", F32, "N"}, {"heap", F32, "K"}
#define STATE SUMS, {"total", F32, ""}, {"highest", F32, ""}

// A call: the leading axes that vmap adds make it one on several trees.

typedef struct {
  XLA_FFI_Buffer buffers[MOST_BUFFERS];  // arguments, then results, without leading axes
  const int64_t *leading[MOST_BUFFERS];  // [axes] sizes
  void *data[MOST_BUFFERS];
  int64_t num_arguments, axes, trees, count;
  tree_t sizes;
} call_t;

// Check and drop the leading axes; those of an argument that trees may share may be 1.
static XLA_FFI_Error *drop_axes(const XLA_FFI_CallFrame *frame, const arl_buffer *wanted,
                                bool may_share, call_t *call) {
  const int64_t num_buffers = frame->args.size + frame->rets.size;
  for (int64_t k = 0; k < num_buffers; ++k) {
    XLA_FFI_Buffer *buffer = call->buffers + k;
    *buffer = *(const XLA_FFI_Buffer *)(k < call->num_arguments
                                            ? frame->args.args[k]
                                            : frame->rets.rets[k - call->num_arguments]);
    if (buffer->rank < call->axes)
      return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                      "%s must have at least the %lld axes of total, got %lld", wanted[k].name,
                      (long long)call->axes, (long long)buffer->rank);
    call->leading[k] = buffer->dims;
    buffer->rank -= call->axes;
    buffer->dims += call->axes;
  }
  const int64_t *dims = call->leading[call->num_arguments];
  for (int64_t k = 0; k < num_buffers; ++k)
    for (int64_t axis = 0; axis < call->axes; ++axis) {
      const int64_t size = call->leading[k][axis];
      if (size != dims[axis] && !(size == 1 && may_share && k < call->num_arguments))
        return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                        "%s must have size %lld in leading axis %lld, got %lld", wanted[k].name,
                        (long long)dims[axis], (long long)axis, (long long)size);
    }
  for (int64_t axis = 0; axis < call->axes; ++axis) call->trees *= dims[axis];
  return NULL;
}

static bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

static XLA_FFI_Error *read_sizes(const XLA_FFI_CallFrame *frame, const arl_sizes *sizes,
                                 tree_t *tree) {
  const int64_t leaves = sizes->of['N'], heap = sizes->of['K'];
  const int64_t rows = heap / 4;
  if (!is_power_of_two(heap) || heap < 4 || leaves > MOST_LEAVES)
    return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                    "heap must have a power of two of numbers, at least 4, over at most %lld "
                    "leaves, got %lld over %lld",
                    (long long)MOST_LEAVES, (long long)heap, (long long)leaves);
  if (leaves != rows * LEAF_ROW)
    return arl_fail(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                    "leaves must be %d for every 4 of the heap's %lld numbers, got %lld", LEAF_ROW,
                    (long long)heap, (long long)leaves);
  *tree = (tree_t){.size = leaves, .rows = (int32_t)rows, .depth = __builtin_ctzll((uint64_t)rows)};
  return NULL;
}

static XLA_FFI_Error *read_call(const XLA_FFI_CallFrame *frame, const arl_buffer *wanted,
                                int64_t num_arguments, int64_t num_results, int64_t scalar,
                                bool may_share, call_t *call) {
  arl_sizes sizes;
  if (frame->args.size != num_arguments || frame->rets.size != num_results)
    return arl_read_buffers(frame, wanted, num_arguments, num_results, call->data, &sizes);
  const XLA_FFI_Buffer *total = frame->args.args[scalar];
  *call = (call_t){.num_arguments = num_arguments, .axes = total->rank, .trees = 1};
  XLA_FFI_Error *error = drop_axes(frame, wanted, may_share, call);
  if (error) return error;
  void *buffers[MOST_BUFFERS];
  for (int k = 0; k < MOST_BUFFERS; ++k) buffers[k] = call->buffers + k;
  XLA_FFI_CallFrame inner = *frame;
  inner.args.args = buffers;
  inner.rets.rets = buffers + num_arguments;
  error = arl_read_buffers(&inner, wanted, num_arguments, num_results, call->data, &sizes);
  if (error) return error;
  call->count = sizes.of['I'];
  return read_sizes(frame, &sizes, &call->sizes);
}

// Bytes of one tree's part of a buffer; all types have four.
static size_t bytes_of(const call_t *call, int64_t k) {
  size_t bytes = 4;
  for (int64_t axis = 0; axis < call->buffers[k].rank; ++axis)
    bytes *= (size_t)call->buffers[k].dims[axis];
  return bytes;
}

// Where a tree's part of a buffer begins.
static void *part_of(const call_t *call, int64_t k, int64_t tree) {
  const int64_t *dims = call->leading[call->num_arguments];
  int64_t at = 0, step = 1;
  for (int64_t axis = call->axes - 1; axis >= 0; --axis) {
    const int64_t size = call->leading[k][axis];
    at += size > 1 ? tree % dims[axis] * step : 0;
    step *= size;
    tree /= dims[axis];
  }
  return (char *)call->data[k] + (size_t)at * bytes_of(call, k);
}

// The tree whose state begins at buffer `first`.
static tree_t tree_of(const call_t *call, int64_t first, int64_t index) {
  tree_t tree = call->sizes;
  tree.leaves = part_of(call, first + LEAVES, index);
  tree.heap = part_of(call, first + HEAP, index);
  return tree;
}

// Do work over all trees, of about `nodes` visits each.
static void share(XLA_FFI_CallFrame *frame, const call_t *call, double nodes,
                  int (*work)(void *argument, int64_t first, int64_t last), void *argument) {
  if ((double)call->trees * nodes < SMALL) {
    work(argument, 0, call->trees);
    return;
  }
  const arl_pool pool = arl_pool_of(frame);
  arl_share(&pool, call->trees, (int64_t)(SMALL / 2 / nodes) + 1, work, argument);
}

// Operands and results of assign and assign_range.

enum { SLOTS = FIELDS, WEIGHTS, ASSIGNED, ASSIGN_BUFFERS = ASSIGNED + FIELDS };

typedef struct {
  const call_t *call;
  int64_t capacity;  // of a range; 0 where slots are given one by one
} assign_work;

static int assign_part(void *argument, int64_t first, int64_t last) {
  const assign_work *work = argument;
  const call_t *call = work->call;
  for (int64_t index = first; index < last; ++index) {
    for (int64_t k = 0; k < FIELDS; ++k) {
      const void *from = part_of(call, k, index);
      void *to = part_of(call, ASSIGNED + k, index);
      if (from != to) memcpy(to, from, bytes_of(call, k));
    }
    const tree_t tree = tree_of(call, ASSIGNED, index);
    const int32_t *slots = part_of(call, SLOTS, index);
    changes_t changes = {.weights = part_of(call, WEIGHTS, index), .count = call->count};
    if (work->capacity) {
      changes.first = *slots;
      changes.capacity = work->capacity;
    } else {
      changes.slots = slots;
    }
    assign(&tree, &changes);
    *(float *)part_of(call, ASSIGNED + TOTAL, index) = tree.heap[1].sum;
    *(float *)part_of(call, ASSIGNED + HIGHEST, index) = tree.heap[1].peak;
  }
  return 0;
}

static XLA_FFI_Error *assign_call(XLA_FFI_CallFrame *frame, const char *slots, const char *shape,
                                  int64_t capacity) {
  const arl_buffer buffers[] = {STATE, {slots, S32, shape}, {"weights", F32, "I"}, STATE};
  call_t call;
  XLA_FFI_Error *error = read_call(frame, buffers, ASSIGNED, FIELDS, TOTAL, false, &call);
  if (error) return error;
  const bool copies = call.data[LEAVES] != call.data[ASSIGNED + LEAVES];
  const double nodes =
      (double)call.count * (call.sizes.depth + 2) + (copies ? (double)call.sizes.size / 8 : 0);
  assign_work work = {&call, capacity};
  share(frame, &call, nodes, assign_part, &work);
  return NULL;
}

ARL_EXPORT XLA_FFI_Error *accel_rl_sum_tree_assign(XLA_FFI_CallFrame *frame) {
  if (arl_answer_metadata(frame)) return NULL;
  return assign_call(frame, "slots", "I", 0);
}

ARL_EXPORT XLA_FFI_Error *accel_rl_sum_tree_assign_range(XLA_FFI_CallFrame *frame) {
  if (arl_answer_metadata(frame)) return NULL;
  static const arl_attribute attributes[] = {{"capacity", 1, MOST_LEAVES}};
  int64_t capacity;
  XLA_FFI_Error *error = arl_read_attributes(frame, attributes, 1, &capacity);
  return error ? error : assign_call(frame, "first", "", capacity);
}

// Operands and results of draw.

enum { DRAW_TOTAL = HEAP + 1, POSITIONS, WORDS, DRAWN, PROBABILITIES };

static int draw_part(void *argument, int64_t first, int64_t last) {
  const call_t *call = argument;
  for (int64_t index = first; index < last; ++index) {
    const tree_t tree = tree_of(call, 0, index);
    const draws_t draws = {.total = *(const float *)part_of(call, DRAW_TOTAL, index),
                           .positions = part_of(call, POSITIONS, index),
                           .words = part_of(call, WORDS, index),
                           .stride = call->count,
                           .slots = part_of(call, DRAWN, index),
                           .probabilities = part_of(call, PROBABILITIES, index)};
    draw(&tree, draws, call->count);
  }
  return 0;
}

ARL_EXPORT XLA_FFI_Error *accel_rl_sum_tree_draw(XLA_FFI_CallFrame *frame) {
  if (arl_answer_metadata(frame)) return NULL;
  static const arl_buffer buffers[] = {
      SUMS,
      {"total", F32, ""},
      {"positions", F32, "I"},
      {"words", U32, "2I"},
      {"slots", S32, "I"},
      {"probabilities", F32, "I"},
  };
  call_t call;
  XLA_FFI_Error *error = read_call(frame, buffers, DRAWN, 2, DRAW_TOTAL, true, &call);
  if (error) return error;
  share(frame, &call, (double)call.count * (call.sizes.depth + 2), draw_part, &call);
  return NULL;
}
