// Handlers short of memory: linked so that these take the place of the C library's allocators.

#include <string.h>

#include "check.h"
#include "example.h"
#include "owned_case.h"
#include "runs.h"
#include "stand_in.h"

enum { CAPACITY = 6000 };

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

// Allocations until the one that fails; below 0, none will.
static int before_malloc = -1, before_calloc = -1, before_aligned_alloc = -1;

void *__wrap_malloc(size_t bytes) { return before_malloc-- == 0 ? NULL : __real_malloc(bytes); }

void *__wrap_calloc(size_t count, size_t bytes) {
  return before_calloc-- == 0 ? NULL : __real_calloc(count, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return before_aligned_alloc-- == 0 ? NULL : __real_aligned_alloc(alignment, bytes);
}

static uint64_t state = 0x3E3ull;

// A call during which the allocation after so many fails; on a pool that runs tasks at once, so
// that allocations come in one order.
static void test_call(handler_t which, int64_t replicas, int *before, int number, bool must_fail) {
  const int32_t lengths[CHUNKS] = {CAPACITY, 2500, CAPACITY - 1};
  stand_in_t stand_in;
  stand_in_start(&stand_in, AT_ONCE, 3);
  XLA_FFI_ExecutionContext context = {.pool = stand_in_pool(&stand_in)};
  example_t example;
  example_make(&example, which, example_program(FP32, Q_LEARNING), CAPACITY, lengths, replicas,
               &context, &state);
  *before = number;
  const reply_t reply = example_call(&example);
  CHECK(*before < 0, "handler %d does not allocate %d times", (int)which, number + 1);
  *before = -1;
  if (must_fail)
    CHECK(reply.code == XLA_FFI_Error_Code_RESOURCE_EXHAUSTED && strstr(reply.message, "memory"),
          "handler %d, allocation %d: code %d: %s", (int)which, number, (int)reply.code,
          reply.message);
  else
    CHECK(reply.code == XLA_FFI_Error_Code_OK && example_is_right(&example),
          "handler %d, allocation %d: code %d: %s", (int)which, number, (int)reply.code,
          reply.message);
  stand_in_stop(&stand_in);
  example_free(&example);
}

// A thread's rows in the order RAN by owner.
static void test_rotated(void) {
  owned_case drawn;
  owned_draw(&drawn, (owned_shape){FP32, ARL_NOTHING_DRAWN, true, 2, 40, 16, 1, 4, 1}, &state);
  arl_owned_run *run = arl_choose_owned(FP32, 16, arl_best_level());
  before_malloc = 0;
  CHECK(run(&drawn.launch, 0, 2) == ARL_NO_MEMORY, "rows without memory");
  CHECK(run(&drawn.launch, 0, 2) == 0, "rows with memory");
  owned_free(&drawn);
}

int main(void) {
  test_rotated();
  for (int number = 0; number < 3; ++number) {
    test_call(LAUNCH, 1, &before_aligned_alloc, number, true);
    test_call(LAUNCH, 66, &before_aligned_alloc, number, true);
    test_call(VISITS, 1, &before_malloc, number, true);
  }
  for (int which = 0; which < HANDLERS; ++which)  // what calls share is small: they do without
    test_call((handler_t)which, 1, &before_calloc, 0, false);
  CHECK(living_errors() == 0, "%lld errors left", (long long)living_errors());
  return finish();
}
