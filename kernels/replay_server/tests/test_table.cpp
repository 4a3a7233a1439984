// Tables: rings, generations, refusals that change nothing, priorities, the limiter.

#include <cmath>

#include "cases.hpp"
#include "random.hpp"

using namespace cases;

static bool equal(const Stats &a, const Stats &b) {
  return a.inserts == b.inserts && a.samples == b.samples && a.updates == b.updates &&
         a.stale == b.stale && a.size == b.size && a.waited == b.waited;
}

static void test_ring(Sampler sampler) {
  const auto made = table(config(sampler, 10));
  int32_t next = 0;
  for (const uint32_t count : {3U, 7U, 1U, 10U, 9U, 4U}) {
    push(made.get(), count, next, nullptr);
    next += static_cast<int32_t>(count);
    Drawn drawn(300);
    CHECK(made->sample(static_cast<uint64_t>(next), 300, &drawn.out) == Status::ok, "no sample");
    for (uint32_t k = 0; k < 300; ++k) {
      const int32_t number = drawn.items.number(k);
      const auto slot = static_cast<uint32_t>(number % 10);
      CHECK(number >= next - 10 && number < next, "item %d of those below %d", number, next);
      CHECK(drawn.slots[k] == slot, "item %d in slot %u", number, drawn.slots[k]);
      CHECK(drawn.generations[k] == static_cast<uint32_t>(number / 10 + 1), "generation %u of %d",
            drawn.generations[k], number);
      CHECK(drawn.items.odd[3 * k + 2] == static_cast<std::byte>(number & 0xFF), "odd of %d",
            number);
    }
  }
}

static void test_refusals() {
  const auto made = table(config(Sampler::prioritised, 10));
  const float good[3] = {1, 2, 3};
  push(made.get(), 3, 0, good);
  const Items items(11, 0);
  const Stats before = made->stats();
  const double total = made->total();
  const uint32_t slots[3] = {0, 1, 10}, generations[3] = {1, 1, 1};
  UpdateCounts counts;
  for (const float bad : {NAN, -NAN, INFINITY, -INFINITY, -1.F, -1e-45F}) {
    const float priorities[3] = {1, bad, 1};
    CHECK(made->push(3, items.columns, priorities) == Status::bad_priority, "%g",
          static_cast<double>(bad));
    CHECK(made->update(2, slots, generations, priorities, &counts) == Status::bad_priority, "%g",
          static_cast<double>(bad));
  }
  CHECK(made->push(0, items.columns, nullptr) == Status::bad_count, "none");
  CHECK(made->push(11, items.columns, nullptr) == Status::bad_count, "more than the capacity");
  CHECK(made->update(3, slots, generations, good, &counts) == Status::bad_slot, "slot 10");
  CHECK(made->update(0, slots, generations, good, &counts) == Status::bad_count, "none");
  Drawn drawn(4);
  CHECK(made->sample(1, 0, &drawn.out) == Status::bad_count, "none");
  CHECK(equal(made->stats(), before) && made->total() == total, "something changed: total %g",
        made->total());
  CHECK(made->stats().refused == before.refused + 17, "%g refused",
        static_cast<double>(made->stats().refused));
}

static void test_updates() {
  const auto made = table(config(Sampler::prioritised, 4));
  push(made.get(), 4, 0, nullptr);
  CHECK(made->total() == 4, "without priorities: total %g", made->total());
  const uint32_t slots[4] = {1, 2, 1, 3}, generations[4] = {1, 1, 1, 2};
  const float priorities[4] = {9, 0, 4, 100};
  UpdateCounts counts;
  CHECK(made->update(4, slots, generations, priorities, &counts) == Status::ok, "refused");
  CHECK(counts.applied == 3 && counts.stale == 1, "%u and %u", counts.applied, counts.stale);
  CHECK(made->total() == 1 + 2 + 0 + 1, "the last wins: total %g", made->total());
  Drawn drawn(64);
  CHECK(made->sample(3, 64, &drawn.out) == Status::ok, "no sample");
  for (uint32_t k = 0; k < 64; ++k)
    CHECK(drawn.slots[k] != 2 && drawn.probabilities[k] == (drawn.slots[k] == 1 ? 0.5 : 0.25),
          "slot %u with probability %g", drawn.slots[k], drawn.probabilities[k]);
  push(made.get(), 1, 4, nullptr);
  CHECK(made->total() == 3 + 2 + 0 + 1, "new ones get the highest, 9: total %g", made->total());
}

static void test_nothing_to_draw() {
  const auto made = table(config(Sampler::prioritised, 4));
  Drawn drawn(4);
  CHECK(made->sample(1, 4, &drawn.out) == Status::retry, "an empty table");
  const float zeros[4] = {0, 0, -0.F, 0};
  push(made.get(), 4, 0, zeros);
  CHECK(made->sample(1, 4, &drawn.out) == Status::retry, "no weight");
  push(made.get(), 1, 0, nullptr);
  CHECK(made->sample(1, 4, &drawn.out) == Status::ok && drawn.slots[3] == 0, "one weight");
}

static void test_limiter() {
  TableConfig limited = config(Sampler::uniform, 100);
  limited.limiter.min_size = 5, limited.limiter.active = true;
  limited.limiter.samples_per_insert = 2;
  limited.limiter.min_diff = 0, limited.limiter.max_diff = 12;
  const auto made = table(limited);
  Drawn drawn(4);
  push(made.get(), 4, 0, nullptr);
  CHECK(made->can_sample(1) == Status::retry, "below min_size");
  push(made.get(), 1, 4, nullptr);
  CHECK(made->can_sample(10) == Status::ok && made->can_sample(11) == Status::retry, "10 are owed");
  CHECK(made->can_push(1) == Status::ok && made->can_push(2) == Status::retry, "12 at most");
  CHECK(made->sample(1, 4, &drawn.out) == Status::ok, "4 of 10");
  push(made.get(), 3, 5, nullptr);
  CHECK(made->can_push(1) == Status::retry, "12 are owed");
  CHECK(made->stats().inserts == 8 && made->stats().samples == 4, "counters");
}

static void test_configurations() {
  std::string why;
  const auto refused = [&why](const TableConfig &wrong, const char *what) {
    CHECK(check(wrong, &why) != Status::ok && !why.empty(), "%s is accepted", what);
    why.clear();
  };
  const TableConfig right = config(Sampler::amper_fr, 10);
  CHECK(check(right, &why) == Status::ok, "%s", why.c_str());
  TableConfig wrong = right;
  wrong.name = "", refused(wrong, "no name");
  wrong = right, wrong.name = "a\nb", refused(wrong, "a control character");
  wrong = right, wrong.capacity = 0, refused(wrong, "capacity 0");
  wrong = right, wrong.capacity = most_capacity + 1, refused(wrong, "a large capacity");
  wrong = right, wrong.priority_exponent = NAN, refused(wrong, "exponent NaN");
  wrong = right, wrong.columns.clear(), refused(wrong, "no columns");
  wrong = right, wrong.columns[1].name = "number", refused(wrong, "a name twice");
  wrong = right, wrong.columns[0].shape = {0}, refused(wrong, "an empty item");
  wrong = right, wrong.columns[0].shape = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
  refused(wrong, "a large item");
  wrong = right, wrong.columns[0].dtype = static_cast<Dtype>(99), refused(wrong, "no dtype");
  wrong = right, wrong.amper.groups = 3, refused(wrong, "3 groups");
  wrong = right, wrong.amper.csp_ratio = 0, refused(wrong, "ratio 0");
  wrong = right, wrong.limiter.min_size = 11, refused(wrong, "min_size above the capacity");
  wrong = right, wrong.limiter.active = true, wrong.limiter.max_diff = NAN;
  refused(wrong, "max_diff NaN");
}

// A sample in steps is that of one call, where copying takes longer than drawing.
static void test_steps() {
  constexpr uint32_t capacity = 300, batch = 512, bytes = 28224;
  for (const Sampler sampler : {Sampler::uniform, Sampler::prioritised, Sampler::amper_fr}) {
    TableConfig wanted = config(sampler, capacity);
    wanted.columns = {{"frame", Dtype::u1, {bytes}}};
    const auto made = table(wanted);
    std::vector<std::byte> frames(size_t{capacity} * bytes);
    std::vector<float> priorities(capacity);
    for (uint32_t k = 0; k < capacity; ++k) {
      memset(frames.data() + size_t{k} * bytes, static_cast<int>(k & 0xFF), bytes);
      priorities[k] = 1.0F + static_cast<float>(k % 7);
    }
    const std::byte *column = frames.data();
    CHECK(made->push(capacity, &column, priorities.data()) == Status::ok, "no push");
    Drawn once(batch), steps(batch);
    std::vector<std::byte> whole(size_t{batch} * bytes), pieces(whole.size());
    std::byte *into[] = {whole.data(), pieces.data()};
    once.out.columns = into, steps.out.columns = into + 1;
    CHECK(made->sample(3, batch, &once.out) == Status::ok, "no sample");
    SampleRun run;
    CHECK(made->begin_sample(3, batch, &run) == Status::ok, "no sample");
    uint32_t taken = 1;
    while (!made->continue_sample(8192, &run, &steps.out)) ++taken;
    CHECK(taken >= 4, "%u steps", taken);
    CHECK(same(once, steps) && whole == pieces, "another sample of %d", static_cast<int>(sampler));
  }
}

int main() {
  test_steps();
  for (const Sampler sampler : {Sampler::uniform, Sampler::prioritised, Sampler::amper_fr})
    test_ring(sampler);
  test_refusals();
  test_updates();
  test_nothing_to_draw();
  test_limiter();
  test_configurations();
  return finish();
}
