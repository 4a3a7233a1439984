// The sum tree's handlers: trees after assignments against trees built anew, draws, what is
// refused, and many trees on a pool's threads.

#include <math.h>
#include <string.h>

#include "check.h"
#include "frames.h"
#include "stand_in.h"

XLA_FFI_Handler accel_rl_sum_tree_assign, accel_rl_sum_tree_assign_range, accel_rl_sum_tree_draw;

enum { LEAVES, HEAP, TOTAL, HIGHEST, FIELDS };

#define F32 XLA_FFI_DataType_F32
#define S32 XLA_FFI_DataType_S32
#define U32 XLA_FFI_DataType_U32

typedef struct {
  int64_t trees, sizes[FIELDS];
  float *fields[FIELDS];  // [trees][size]
} forest_t;

static uint64_t state = 0x5EEDull;
static stand_in_t stand_in;
static XLA_FFI_ExecutionContext context;

static int64_t draw_between(int64_t least, int64_t most) {
  return random_between(&state, least, most);
}

static float draw_weight(int kind) {
  if (kind == 0) return (float)draw_between(0, 3);
  return ldexpf((float)draw_between(0, 1 << 24), (int)draw_between(-60, 60));
}

static forest_t make_forest(int64_t trees, int64_t rows) {
  forest_t forest = {trees, {8 * rows, 4 * rows, 1, 1}, {0}};
  for (int k = 0; k < FIELDS; ++k) {
    const size_t bytes = (size_t)(trees * forest.sizes[k]) * sizeof(float);
    forest.fields[k] = must_allocate(bytes);
    memset(forest.fields[k], 0, bytes);
  }
  return forest;
}

static void free_forest(forest_t *forest) {
  for (int k = 0; k < FIELDS; ++k) free(forest->fields[k]);
}

// Sums by halves, from their definition.
static float sum_of(const float *row, int64_t width, int64_t step) {
  return step == width ? *row : sum_of(row, width, 2 * step) + sum_of(row + step, width, 2 * step);
}

// All but the leaves, made of them.
static void rebuild(forest_t *forest, int64_t tree) {
  float *field[FIELDS];
  for (int k = 0; k < FIELDS; ++k) field[k] = forest->fields[k] + tree * forest->sizes[k];
  const int64_t rows = forest->sizes[HEAP] / 4;
  for (int64_t row = 0; row < rows; ++row) {
    const float *first = field[LEAVES] + 8 * row;
    float *node = field[HEAP] + 2 * (rows + row);
    node[0] = sum_of(first, 8, 1);
    node[1] = 0;
    for (int k = 0; k < 8; ++k) node[1] = fmaxf(node[1], first[k]);
  }
  for (int64_t k = rows - 1; k > 0; --k) {
    float *node = field[HEAP] + 2 * k;
    const float *children = node + 2 * k;
    node[0] = children[0] + children[2];
    node[1] = fmaxf(children[1], children[3]);
  }
  *field[TOTAL] = field[HEAP][2];
  *field[HIGHEST] = field[HEAP][3];
}

static void add_leading(call_t *call, bool is_result, XLA_FFI_DataType dtype, void *data,
                        int64_t trees, int64_t rank, const int64_t *dims) {
  int64_t all[MOST_AXES] = {trees};
  memcpy(all + 1, dims, (size_t)rank * sizeof *dims);
  (is_result ? call_result : call_argument)(call, dtype, data, rank + 1, all);
}

static void add_field(call_t *call, bool is_result, const forest_t *forest, int k) {
  add_leading(call, is_result, F32, forest->fields[k], forest->trees, k < TOTAL, forest->sizes + k);
}

// A call of assign, or of assign_range where there is a capacity.
static call_t assign_call(const forest_t *from, const forest_t *to, int64_t n, int32_t *slots,
                          float *weights, int64_t capacity) {
  call_t call = {.context = &context};
  for (int k = 0; k < FIELDS; ++k) add_field(&call, false, from, k);
  add_leading(&call, false, S32, slots, from->trees, capacity == 0, &n);
  add_leading(&call, false, F32, weights, from->trees, 1, &n);
  for (int k = 0; k < FIELDS; ++k) add_field(&call, true, to, k);
  if (capacity) call_attribute(&call, "capacity", capacity);
  return call;
}

static call_t draw_call(const forest_t *forest, int64_t trees, int64_t n, float *positions,
                        uint32_t *words, int32_t *slots, float *probabilities) {
  call_t call = {.context = &context};
  for (int k = LEAVES; k <= TOTAL; ++k) add_field(&call, false, forest, k);
  add_leading(&call, false, F32, positions, trees, 1, &n);
  add_leading(&call, false, U32, words, trees, 2, (int64_t[]){2, n});
  add_leading(&call, true, S32, slots, trees, 1, &n);
  add_leading(&call, true, F32, probabilities, trees, 1, &n);
  return call;
}

static void check_ok(call_t *call, XLA_FFI_Handler *handler) {
  const reply_t reply = call_make(call, handler);
  CHECK(reply.code == XLA_FFI_Error_Code_OK, "%s", reply.message);
}

// Weights at slots one by one or, where there is a capacity, from `slots[tree]` on.
static void set_leaves(forest_t *forest, int64_t n, const int32_t *slots, const float *weights,
                       int64_t capacity) {
  for (int64_t tree = 0; tree < forest->trees; ++tree) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t slot = capacity ? (slots[tree] + i) % capacity : slots[tree * n + i];
      if (slot >= 0 && slot < forest->sizes[LEAVES])
        forest->fields[LEAVES][tree * forest->sizes[LEAVES] + slot] = weights[tree * n + i];
    }
    rebuild(forest, tree);
  }
}

static void check_same(const forest_t *found, const forest_t *wanted, int64_t n) {
  for (int k = 0; k < FIELDS; ++k)
    CHECK(memcmp(found->fields[k], wanted->fields[k],
                 (size_t)(found->trees * found->sizes[k]) * sizeof(float)) == 0,
          "field %d differs after %lld weights in %lld leaves", k, (long long)n,
          (long long)found->sizes[LEAVES]);
}

static void check_draws(const forest_t *forest, int64_t trees, int64_t n) {
  const size_t items = (size_t)(trees * n);
  float *positions = must_allocate(items * 4), *probabilities = must_allocate(items * 4);
  uint32_t *words = must_allocate(items * 8);
  int32_t *slots = must_allocate(items * 4);
  for (size_t i = 0; i < items; ++i) positions[i] = (float)draw_between(0, 1 << 24) * 0x1p-24f;
  for (size_t i = 0; i < 2 * items; ++i) words[i] = (uint32_t)random_bits(&state);
  call_t call = draw_call(forest, trees, n, positions, words, slots, probabilities);
  check_ok(&call, accel_rl_sum_tree_draw);
  for (size_t i = 0; i < items; ++i) {
    const int64_t tree = forest->trees > 1 ? (int64_t)i / n : 0, size = forest->sizes[LEAVES];
    const float total = forest->fields[TOTAL][tree];
    CHECK(slots[i] >= 0 && slots[i] < size, "slot %d of %lld", slots[i], (long long)size);
    const float leaf = forest->fields[LEAVES][tree * size + slots[i]];
    CHECK(total > 0 ? leaf > 0 && probabilities[i] == leaf / total : probabilities[i] == 0,
          "slot %d has weight %g of %g, probability %g", slots[i], leaf, total, probabilities[i]);
  }
  free(positions), free(probabilities), free(words), free(slots);
}

// Assignments to some trees, in place and not.
static void test_history(int64_t trees, int64_t rows, int rounds, int64_t most) {
  forest_t now = make_forest(trees, rows);
  forest_t other = make_forest(trees, rows);
  forest_t wanted = make_forest(trees, rows);
  const int64_t size = now.sizes[LEAVES];
  for (int round = 0; round < rounds; ++round) {
    const int64_t capacity = draw_between(0, 1) ? draw_between(size / 2, size) : 0;
    const int64_t n = draw_between(0, capacity && capacity < most ? capacity : most);
    int32_t *slots = must_allocate((size_t)(trees * (capacity ? 1 : n)) * 4);
    float *weights = must_allocate((size_t)(trees * n) * 4);
    const int kind = (int)draw_between(0, 1);
    for (int64_t i = 0; i < trees * n; ++i) weights[i] = draw_weight(kind);
    for (int64_t i = 0; i < trees * (capacity ? 1 : n); ++i)
      slots[i] = (int32_t)(capacity ? draw_between(0, capacity - 1) : draw_between(-2, size + 1));
    if (!capacity && n > 1) slots[0] = INT32_MIN, slots[1] = INT32_MAX;
    const bool in_place = draw_between(0, 1);
    forest_t before = now;
    if (!in_place) now = other, other = before;
    call_t call = assign_call(&before, &now, n, slots, weights, capacity);
    check_ok(&call, capacity ? accel_rl_sum_tree_assign_range : accel_rl_sum_tree_assign);
    if (!in_place) check_same(&before, &wanted, n);
    set_leaves(&wanted, n, slots, weights, capacity);
    check_same(&now, &wanted, n);
    check_draws(&now, trees, draw_between(0, 300));
    if (trees == 1) check_draws(&now, 3, 5);
    free(slots), free(weights);
  }
  free_forest(&now), free_forest(&other), free_forest(&wanted);
}

// Weights that are no weights and positions that are no positions do no harm.
static void test_nonsense(void) {
  static const float wrong[] = {NAN, INFINITY, -INFINITY, -1, 3e38f, -0.0f, 1e-45f};
  forest_t forest = make_forest(1, 64);
  for (int round = 0; round < 200; ++round) {
    int32_t slots[9];
    float weights[9];
    for (int i = 0; i < 9; ++i) {
      slots[i] = (int32_t)random_bits(&state) >> draw_between(0, 26);
      weights[i] = wrong[draw_between(0, 6)];
    }
    const bool is_range = draw_between(0, 1);
    call_t call = assign_call(&forest, &forest, 9, slots, weights, is_range ? 500 : 0);
    check_ok(&call, is_range ? accel_rl_sum_tree_assign_range : accel_rl_sum_tree_assign);
    uint32_t words[18] = {0, UINT32_MAX};
    int32_t drawn[9];
    float probabilities[9];
    call = draw_call(&forest, 1, 9, weights, words, drawn, probabilities);
    check_ok(&call, accel_rl_sum_tree_draw);
    for (int i = 0; i < 9; ++i) CHECK(drawn[i] >= 0 && drawn[i] < 512, "slot %d", drawn[i]);
  }
  free_forest(&forest);
}

static void refuse(const call_t *right, XLA_FFI_Handler *handler, const char *what, int64_t k) {
  call_t call = *right;
  const reply_t reply = call_make(&call, handler);
  CHECK(reply.code == XLA_FFI_Error_Code_INVALID_ARGUMENT && reply.message[0],
        "%s of buffer %lld: code %d: %s", what, (long long)k, (int)reply.code, reply.message);
}

static void test_refusals(const call_t *right, XLA_FFI_Handler *handler) {
  const int64_t buffers = right->num_arguments + right->num_results;
  for (int64_t k = 0; k < buffers; ++k) {
    call_t wrong = *right;
    wrong.buffers[k].dtype = XLA_FFI_DataType_F64;
    refuse(&wrong, handler, "data type", k);
    for (int64_t rank = 0; rank <= MOST_AXES; ++rank) {
      wrong = *right;
      wrong.buffers[k].rank = rank;
      if (rank != right->buffers[k].rank) refuse(&wrong, handler, "rank", k);
    }
    for (int64_t axis = 0; axis < right->buffers[k].rank; ++axis) {
      // A range is as long as its weights.
      if (handler == accel_rl_sum_tree_assign_range && k == FIELDS + 1 && axis == 1) continue;
      const int64_t sizes[] = {0, right->dims[k][axis] + 1, INT64_MAX};
      for (int i = 0; i < 3; ++i) {
        wrong = *right;
        wrong.dims[k][axis] = sizes[i];
        refuse(&wrong, handler, "size", k);
      }
    }
  }
  call_t wrong = *right;
  --wrong.num_results;
  refuse(&wrong, handler, "number", buffers - 1);
  if (right->num_attributes) {
    wrong = *right;
    wrong.values[0] = 0;
    refuse(&wrong, handler, "capacity", -1);
  }
}

// Sizes that agree with each other but are no tree's: [leaves, heap].
static void test_shapes(const call_t *right) {
  static const int64_t shapes[][2] = {
      {64, 0},  {64, 2}, {64, 12}, {64, 16},     {64, 64},
      {96, 48}, {0, 32}, {8, 32},  {1 << 30, 4}, {INT64_C(1) << 31, 1 << 30}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
    call_t wrong = *right;
    for (int64_t k = 0; k <= FIELDS + 2; k += FIELDS + 2)
      for (int field = LEAVES; field <= HEAP; ++field) wrong.dims[k + field][1] = shapes[i][field];
    refuse(&wrong, accel_rl_sum_tree_assign, "shape", (int64_t)i);
  }
}

static void test_wrong_calls(void) {
  forest_t forest = make_forest(2, 8);
  int32_t slots[6] = {0};
  float weights[6] = {0};
  uint32_t words[12] = {0};
  call_t call = assign_call(&forest, &forest, 3, slots, weights, 0);
  test_refusals(&call, accel_rl_sum_tree_assign);
  test_shapes(&call);
  call = assign_call(&forest, &forest, 3, slots, weights, 64);
  test_refusals(&call, accel_rl_sum_tree_assign_range);
  call = draw_call(&forest, 2, 3, weights, words, slots, weights);
  test_refusals(&call, accel_rl_sum_tree_draw);
  free_forest(&forest);
}

// With an argument the pool runs each task at once, in the caller's thread: so that the
// instructions can be counted, as Valgrind counts those of other threads, too.
int main(int num_words, char **words) {
  (void)words;
  stand_in_start(&stand_in, num_words > 1 ? AT_ONCE : THREADS, 3);
  context.pool = stand_in_pool(&stand_in);
  static const int64_t rows[] = {1, 2, 8, 16, 128};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    for (int64_t trees = 1; trees <= 3; trees += 2) test_history(trees, rows[i], 40, 20);
  test_history(1, 256, 20, 900);
  const int64_t before = stand_in.scheduled;
  test_history(9, 1024, 8, 600);
  CHECK(stand_in.scheduled > before, "all work stays on one thread");
  test_nonsense();
  test_wrong_calls();
  stand_in_stop(&stand_in);
  CHECK(living_errors() == 0, "%lld errors left", (long long)living_errors());
  return finish();
}
