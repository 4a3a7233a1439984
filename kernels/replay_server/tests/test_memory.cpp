// Calls of a table allocate no memory: all that they need was taken when it was made. AMPER's
// samples may, where few items match.

#include <cstdlib>
#include <new>

#include "cases.hpp"

static long allocations = 0;

extern "C" {
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_malloc(size_t bytes) {
  ++allocations;
  return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
  ++allocations;
  return __real_calloc(count, bytes);
}
}

void *operator new(size_t bytes) {
  void *memory = malloc(bytes > 0 ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void operator delete(void *memory) noexcept { free(memory); }
void operator delete(void *memory, size_t) noexcept { free(memory); }

using namespace cases;

static void test_calls(Sampler sampler) {
  const auto made = table(config(sampler, 1000));
  const Items items(700, 0);
  Drawn drawn(300);
  std::vector<float> priorities(700, 1.F);
  const long before = allocations;
  CHECK(before > 0, "allocations are not counted");
  for (uint64_t round = 0; round < 20; ++round) {
    UpdateCounts counts;
    CHECK(made->push(700, items.columns, priorities.data()) == Status::ok, "push");
    CHECK(made->sample(round, 300, &drawn.out) == Status::ok, "sample");
    priorities[round] = 0;
    CHECK(made->update(300, drawn.slots.data(), drawn.generations.data(), priorities.data(),
                       &counts) == Status::ok,
          "update");
    (void)made->stats();
  }
  CHECK(allocations == before, "%ld allocations in calls", allocations - before);
}

int main() {
  for (const Sampler sampler : {Sampler::uniform, Sampler::prioritised}) test_calls(sampler);
  return finish();
}
