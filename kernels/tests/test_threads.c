// Handlers whose work is large enough to share with a pool's threads.

#include "check.h"
#include "example.h"
#include "stand_in.h"

enum { CAPACITY = 6000 };

static uint64_t state = 0x7EADull;

static void test_call(handler_t which, int numerics, int64_t replicas, conduct_t conduct) {
  const int32_t lengths[CHUNKS] = {CAPACITY, 2500, CAPACITY - 1};
  stand_in_t stand_in;
  stand_in_start(&stand_in, conduct, 3);
  XLA_FFI_ExecutionContext context = {.pool = stand_in_pool(&stand_in)};
  example_t example;
  example_make(&example, which, example_program(numerics, EXPECTED_SARSA), CAPACITY, lengths,
               replicas, &context, &state);
  const reply_t reply = example_call(&example);
  CHECK(reply.code == XLA_FFI_Error_Code_OK, "handler %d: %s", (int)which, reply.message);
  CHECK(example_is_right(&example), "handler %d, numerics %d, %lld replicas, conduct %d",
        (int)which, numerics, (long long)replicas, (int)conduct);
  CHECK(stand_in.scheduled > 0, "handler %d keeps all work to itself", (int)which);
  if (which == EXAMINE) {
    example.scenario.rows[2499 + CAPACITY].entry = 1000;
    CHECK(example_call(&example).code == XLA_FFI_Error_Code_OK, "a bad row");
    CHECK(example.result[2] == 2499, "row %u is bad", example.result[2]);
  }
  stand_in_stop(&stand_in);
  example_free(&example);
}

int main(void) {
  for (conduct_t conduct = THREADS; conduct <= LATE; ++conduct)
    for (int which = 0; which < HANDLERS; ++which) {
      test_call((handler_t)which, FP32, 1, conduct);
      if (which == LAUNCH) test_call(LAUNCH, POW2, 66, conduct);
    }
  return finish();
}
