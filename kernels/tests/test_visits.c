// Visits against counting the updates of plain training.

#include <string.h>

#include "check.h"
#include "scenario.h"

enum { STATES = 5, CAPACITY = 131 };

static void test_program(truth_program program, int64_t capacity, const int32_t lengths[CHUNKS],
                         uint64_t *state) {
  scenario_t scenario;
  scenario_draw(&scenario, program, capacity, lengths, state);
  const size_t entries = (size_t)scenario.launch.entries, bytes = entries * sizeof(uint32_t);
  double *table = calloc((size_t)scenario.launch.starts * entries, sizeof *table);
  double *tables = must_allocate(CHUNKS * entries * sizeof *tables);
  uint32_t *want = must_allocate(CHUNKS * bytes), *counts = must_allocate(CHUNKS * bytes);
  if (!table) abort();
  scenario_train(&scenario, table, tables, want);
  memset(counts, 0xA5, CHUNKS * bytes);
  CHECK(arl_visits(&scenario.launch, counts, CHUNKS - 1, CHUNKS) == 0, "the last chunk");
  for (size_t k = 0; k < (CHUNKS - 1) * entries; ++k)
    CHECK(counts[k] == 0xA5A5A5A5, "the last chunk's visits change count %zu", k);
  CHECK(arl_visits(&scenario.launch, counts, 0, CHUNKS - 1) == 0, "the other chunks");
  for (size_t k = 0; k < CHUNKS * entries; ++k)
    CHECK(counts[k] == want[k],
          "rule %d, order %d, %lld actions: entry %zu of chunk %zu: %u, not %u", program.rule,
          program.order, (long long)program.actions, k % entries, k / entries, counts[k], want[k]);
  free(table);
  free(tables);
  free(want);
  free(counts);
  scenario_free(&scenario);
}

int main(void) {
  uint64_t state = 0xC0117ull;
  const int32_t lengths[CHUNKS] = {CAPACITY, 0, 77}, none[CHUNKS] = {0, 0, 0};
  for (int rule = 0; rule < RULES; ++rule)
    for (int order = 0; order < ORDERS; ++order)
      for (int64_t actions = 1; actions <= 6; ++actions) {
        const truth_program program = {.numerics = FP32,
                                       .rule = rule,
                                       .order = order,
                                       .stride = 3,
                                       .block = 128,
                                       .states = STATES,
                                       .actions = actions,
                                       .explore = 6554};
        test_program(program, CAPACITY, lengths, &state);
        test_program(program, 0, none, &state);
      }
  return finish();
}
