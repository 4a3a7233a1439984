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
  wanted.priority_exponent = 1, wanted.amper.csp_ratio = 2e-6F;
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

// A sample in steps is that of one call, whether trying suffices or members are counted.
static void test_steps() {
  constexpr uint32_t capacity = 30000, batch = 16;
  for (const float ratio : {0.5F, 0.001F}) {
    TableConfig wanted = config(Sampler::amper_fr, capacity);
    wanted.priority_exponent = 1, wanted.amper.csp_ratio = ratio;
    const auto made = table(wanted);
    std::vector<float> priorities(capacity);
    for (uint32_t k = 0; k < capacity; ++k)
      priorities[k] = static_cast<float>(std::pow(uniform_draw(3, k), 12));
    push(made.get(), capacity, 0, priorities.data());
    for (uint32_t call = 0; call < 40; ++call) {
      Drawn once(batch), steps(batch);
      CHECK(made->sample(call, batch, &once.out) == Status::ok, "no sample");
      SampleRun run;
      CHECK(made->begin_sample(call, batch, &run) == Status::ok, "no sample");
      uint32_t taken = 1;
      while (!made->continue_sample(97, &run, &steps.out)) ++taken;
      CHECK(taken > 1, "%u steps", taken);
      CHECK(once.slots == steps.slots && once.probabilities == steps.probabilities &&
                once.generations == steps.generations,
            "call %u differs", call);
    }
  }
}

// Whatever becomes of the weights between steps, an item is drawn, and is what its slot holds.
static void test_changes_between_steps() {
  constexpr uint32_t capacity = 20000, batch = 64;
  TableConfig wanted = config(Sampler::amper_fr, capacity);
  wanted.priority_exponent = 1, wanted.amper.csp_ratio = 0.001F;
  const auto made = table(wanted);
  std::vector<float> priorities(capacity);
  for (uint32_t k = 0; k < capacity; ++k)
    priorities[k] = static_cast<float>(std::pow(uniform_draw(5, k), 12));
  push(made.get(), capacity, 0, priorities.data());
  std::vector<uint32_t> slots(1), generations(1, 1);
  for (uint32_t call = 0; call < 50; ++call) {
    Drawn drawn(batch);
    SampleRun run;
    CHECK(made->begin_sample(call, batch, &run) == Status::ok, "no sample");
    for (uint32_t step = 0; !made->continue_sample(1000, &run, &drawn.out); ++step) {
      slots[0] = step % capacity;
      const float priority = step % 3 == 0 ? 0.0F : step % 3 == 1 ? 1.0F : 1e20F;
      UpdateCounts counts;
      CHECK(made->update(1, slots.data(), generations.data(), &priority, &counts) == Status::ok,
            "no update");
    }
    for (uint32_t k = 0; k < batch; ++k) {
      CHECK(drawn.slots[k] < capacity && drawn.generations[k] == 1, "slot %u", drawn.slots[k]);
      CHECK(drawn.probabilities[k] > 0 && drawn.probabilities[k] <= 1, "probability %g",
            drawn.probabilities[k]);
    }
  }
}

int main() {
  test_weights();
  test_rare();
  test_steps();
  test_changes_between_steps();
  return finish();
}
