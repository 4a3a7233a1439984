// Passes by owner in every compiled form against the same rows one at a time; and records and slots
// that lead outside, which are found and touch nothing there.

#include <string.h>

#include "check.h"
#include "owned_case.h"
#include "runs.h"

static uint64_t state = 0x0E4EDull;

static void test_shape(owned_shape shape) {
  owned_case drawn;
  owned_draw(&drawn, shape, &state);
  for (arl_level level = ARL_BASE; level <= arl_best_level(); ++level) {
    memset(drawn.runs, 0xA5, (size_t)drawn.results * sizeof *drawn.runs);
    arl_owned_run *run = arl_choose_owned(shape.numerics, shape.lanes, level);
    const int64_t items = shape.chunks * shape.replicas, half = items / 2;
    CHECK(run(&drawn.launch, half, items) == 0 && run(&drawn.launch, 0, half) == 0, "a fault");
    for (int64_t k = 0; k < drawn.results; ++k)
      CHECK(drawn.runs[k] == drawn.expected[k],
            "%s, numerics %d, choice %d, rotates %d, %lld lanes, %lld rows, %lld replicas, %u "
            "passes: value %lld of %lld is %08x, not %08x",
            arl_level_name(level), shape.numerics, (int)shape.choice, (int)shape.rotates,
            (long long)shape.lanes, (long long)shape.most_rows, (long long)shape.replicas,
            shape.passes, (long long)k, (long long)drawn.results, drawn.runs[k], drawn.expected[k]);
  }
  owned_free(&drawn);
}

// Lanes that fill no vector, one, and parts of several; rows for no lane, for some, and for all.
static void test_shapes(int numerics, arl_choice choice, bool rotates) {
  static const int64_t lanes[] = {1, 2, 4, 5, 8, 15, 16, 17, 40}, rows[] = {0, 1, 11, 16, 150, 321};
  for (size_t l = 0; l < sizeof lanes / sizeof *lanes; ++l)
    for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
      const bool more = (l + r) % 2;
      test_shape((owned_shape){.numerics = numerics,
                               .choice = choice,
                               .rotates = rotates,
                               .chunks = more ? 4 : 1,
                               .most_rows = rows[r],
                               .lanes = lanes[l],
                               .replicas = more ? 1 : 3,
                               .run = r % 3 ? 50 : 2,
                               .passes = l % 2 ? 1 : 3});
    }
}

// A record or a slot of a lane becomes wrong, with the neighbours as they are.
static void test_fault(int numerics, arl_choice choice, bool rotates, int64_t lanes,
                       int64_t most_rows) {
  const owned_shape shape = {numerics, choice, rotates, 3, most_rows, lanes, 2, 20, 2};
  owned_case drawn;
  owned_draw(&drawn, shape, &state);
  arl_owned *launch = &drawn.launch;
  const uint32_t last = (uint32_t)launch->values - (choice == ARL_NOTHING_DRAWN ? 1 : 0);
  const uint32_t bad[] = {last + 1, INT32_MAX, UINT32_MAX, UINT32_C(1) << 31 | (last + 1)};
  const int32_t bad_slots[] = {-1, INT32_MIN, INT32_MAX, (int32_t)launch->slots};
  for (arl_level level = ARL_BASE; level <= arl_best_level(); ++level) {
    arl_owned_run *run = arl_choose_owned(numerics, lanes, level);
    const int64_t items = shape.chunks * shape.replicas, length = drawn.lengths[0];
    for (int k = 0; k < 4; ++k) {
      const int64_t row = random_between(&state, 0, length - 1), lane = row % lanes;
      uint32_t *record = drawn.records + row / lanes * 2 * lanes + lane, right = *record;
      *record = bad[k];
      CHECK(run(launch, 0, items) == ARL_BAD_INDEX, "index %08x", bad[k]);
      *record = right;
      int32_t *slot = drawn.slots + lane, right_slot = *slot;
      *slot = bad_slots[k];
      CHECK(run(launch, 0, items) == ARL_BAD_SLOT, "slot %d of lane %lld", *slot, (long long)lane);
      *slot = right_slot;
    }
    // More runs than there are slots for.
    const int32_t right_slot = drawn.slots[0];
    drawn.slots[0] = (int32_t)launch->slots - 1;
    for (int64_t t = 0; t < length / lanes; ++t) drawn.records[t * 2 * lanes] |= UINT32_C(1) << 31;
    CHECK(run(launch, 0, items) == ARL_BAD_SLOT, "too many runs of %lld lanes", (long long)lanes);
    drawn.slots[0] = right_slot;
  }
  owned_free(&drawn);
}

int main(void) {
  printf("instruction sets up to %s\n", arl_level_name(arl_best_level()));
  for (int numerics = FP32; numerics <= POW2; ++numerics)
    for (int choice = 0; choice < ARL_CHOICES; ++choice)
      for (int rotates = 0; rotates < 2; ++rotates) {
        test_shapes(numerics, (arl_choice)choice, rotates);
        test_fault(numerics, (arl_choice)choice, rotates, 16, 100);
        test_fault(numerics, (arl_choice)choice, rotates, 5, 12);
      }
  return finish();
}
