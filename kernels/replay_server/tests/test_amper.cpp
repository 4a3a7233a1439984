// AMPER-fr: frequencies against the probabilities that are given, and sets that are hard to hit.

#include <cmath>
#include <vector>

#include "cases.hpp"
#include "random.hpp"

using namespace cases;

// The expectation of f under the draws' law, by importance-sampling weights, is that of uniform
// draws.
static void test_weights() {
  constexpr uint32_t capacity = 2000, batch = 256, calls = 1500;
  TableConfig wanted = config(Sampler::amper_fr, capacity);
  wanted.priority_exponent = 1;
  const auto made = table(wanted);
  std::vector<float> priorities(capacity);
  for (uint32_t k = 0; k < capacity; ++k)
    priorities[k] = static_cast<float>(uniform_draw(7, k) + 0.01);
  push(made.get(), capacity, 0, priorities.data());
  Drawn drawn(batch);
  std::vector<double> share(10);
  double all = 0, mean = 0;
  for (uint32_t call = 0; call < calls; ++call) {
    CHECK(made->sample(call, batch, &drawn.out) == Status::ok, "no sample");
    for (uint32_t k = 0; k < batch; ++k) {
      const auto priority = static_cast<double>(priorities[drawn.slots[k]]);
      share[static_cast<size_t>((priority - 0.01) * 10)] += 1 / drawn.probabilities[k];
      all += 1 / drawn.probabilities[k];
      mean += priority / (static_cast<double>(batch) * calls);
    }
  }
  CHECK(mean > 0.63 && mean < 0.70, "mean priority %g", mean);  // 2/3 if in proportion
  for (size_t k = 0; k < 10; ++k)
    CHECK(std::fabs(share[k] / all - 0.1) < 0.02, "part %zu has share %g", k, share[k] / all);
}

// One heavy item among light ones: hardly anything is in a set, and often nothing.
static void test_rare() {
  constexpr uint32_t capacity = 30000;
  TableConfig wanted = config(Sampler::amper_fr, capacity);
  wanted.priority_exponent = 1, wanted.amper.csp_ratio = 0.001F;
  const auto made = table(wanted);
  std::vector<float> priorities(capacity);
  priorities[123] = 1, priorities[9] = 1e-20F;
  push(made.get(), capacity, 0, priorities.data());
  Drawn drawn(8);
  uint32_t empty = 0, found = 0;
  for (uint32_t call = 0; call < 200; ++call) {
    CHECK(made->sample(call, 8, &drawn.out) == Status::ok, "no sample");
    for (uint32_t k = 0; k < 8; ++k) {
      CHECK(priorities[drawn.slots[k]] > 0, "slot %u has no weight", drawn.slots[k]);
      const bool is_any = drawn.probabilities[k] == 1.0 / capacity;
      (is_any ? empty : found) += 1;
      CHECK(is_any || drawn.slots[k] == 123, "slot %u is in a set", drawn.slots[k]);
    }
  }
  CHECK(empty > 0 && found > 0, "%u draws of any, %u of a set", empty, found);
}

int main() {
  test_weights();
  test_rare();
  return finish();
}
