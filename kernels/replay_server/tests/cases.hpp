// Tables and items that the tests share.

#ifndef ACCEL_RL_REPLAY_TESTS_CASES_HPP
#define ACCEL_RL_REPLAY_TESTS_CASES_HPP

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "table.hpp"

namespace cases {

using namespace accel_rl::replay;

inline TableConfig config(Sampler sampler, uint32_t capacity) {
  TableConfig made;
  made.name = "table", made.capacity = capacity, made.sampler = sampler;
  made.priority_exponent = 0.5F;
  made.columns = {{"number", Dtype::i4, {}}, {"odd", Dtype::u1, {3}}};
  return made;
}

inline std::unique_ptr<Table> table(const TableConfig &wanted) {
  std::unique_ptr<Table> made;
  std::string why;
  const Status status = Table::make(wanted, &made, &why);
  CHECK(status == Status::ok, "%s", why.c_str());
  if (!made) abort();
  return made;
}

// Items that all hold their number in both columns, at addresses without alignment.
struct Items {
  explicit Items(uint32_t count, int32_t first) : numbers(4 * count + 1), odd(3 * count) {
    for (uint32_t k = 0; k < count; ++k) {
      const int32_t number = first + static_cast<int32_t>(k);
      memcpy(numbers.data() + 1 + 4 * k, &number, 4);
      memset(odd.data() + 3 * k, number & 0xFF, 3);
    }
    columns[0] = numbers.data() + 1, columns[1] = odd.data();
  }
  int32_t number(uint32_t k) const {
    int32_t number;
    memcpy(&number, numbers.data() + 1 + 4 * k, 4);
    return number;
  }

  std::vector<std::byte> numbers, odd;
  const std::byte *columns[2];
};

// Room for a sample, and the sample.
struct Drawn {
  explicit Drawn(uint32_t batch)
      : slots(batch), generations(batch), probabilities(batch), items(batch, 0) {
    columns[0] = items.numbers.data() + 1, columns[1] = items.odd.data();
    out.slots = slots.data(), out.generations = generations.data();
    out.probabilities = probabilities.data(), out.columns = columns;
  }

  std::vector<uint32_t> slots, generations;
  std::vector<double> probabilities;
  Items items;
  std::byte *columns[2];
  SampleOut out;
};

inline bool same(const Drawn &a, const Drawn &b) {
  return a.slots == b.slots && a.generations == b.generations &&
         a.probabilities == b.probabilities && a.items.numbers == b.items.numbers &&
         a.items.odd == b.items.odd && a.out.size == b.out.size && a.out.total == b.out.total;
}

inline void push(Table *to, uint32_t count, int32_t first, const float *priorities) {
  const Items items(count, first);
  const Status status = to->push(count, items.columns, priorities);
  CHECK(status == Status::ok, "push of %u gives %d", count, static_cast<int>(status));
}

}  // namespace cases

#endif
