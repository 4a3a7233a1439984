// The sum tree against sums made anew, and positions at every edge.

#include <cmath>
#include <vector>

#include "check.h"
#include "random.hpp"
#include "sum_tree.hpp"

using namespace accel_rl::replay;

static uint64_t state = 0x5EED;

static float draw_weight(int kind) {
  if (kind == 0) return static_cast<float>(random_between(&state, 0, 2));
  const auto mantissa = static_cast<float>(random_between(&state, 0, 1 << 24));
  return std::ldexp(mantissa, static_cast<int>(random_between(&state, -90, 60)));
}

// As the tree adds: by eights, left to right.
static double sum_of(const std::vector<float> &weights) {
  std::vector<double> sums(weights.begin(), weights.end());
  do {
    std::vector<double> above((sums.size() + 7) / 8);
    for (size_t k = 0; k < sums.size(); ++k) above[k / 8] += sums[k];
    sums = above;
  } while (sums.size() > 1);
  return sums[0];
}

static void check_draws(const SumTree &tree, const std::vector<float> &weights) {
  const double total = tree.total();
  if (!(total > 0)) return;
  std::vector<double> positions = {0, total, std::nextafter(total, 0), 2 * total, INFINITY, 5e-324};
  double before = 0;
  std::vector<uint32_t> wanted;
  for (uint32_t slot = 0; slot < weights.size() && slot < 100; ++slot) {
    positions.push_back(before);
    before += static_cast<double>(weights[slot]);
  }
  for (int k = 0; k < 200; ++k) positions.push_back(uniform_draw(random_bits(&state), 0) * total);
  std::vector<uint32_t> slots(positions.size());
  tree.find(positions.data(), static_cast<uint32_t>(positions.size()), slots.data());
  for (size_t k = 0; k < slots.size(); ++k)
    CHECK(slots[k] < weights.size() && weights[slots[k]] > 0, "position %g of %g finds slot %u",
          positions[k], total, slots[k]);
}

static void test_history(uint32_t capacity, int kind) {
  SumTree tree;
  CHECK(tree.allocate(capacity, true), "no memory");
  std::vector<float> weights(capacity);
  for (int round = 0; round < 40; ++round) {
    const int64_t changes = random_between(&state, 0, round % 4 == 0 ? 2 * capacity : 20);
    for (int64_t k = 0; k < changes; ++k) {
      const auto slot = static_cast<uint32_t>(random_between(&state, 0, capacity - 1));
      tree.set(slot, weights[slot] = round % 7 == 6 ? 0 : draw_weight(kind));
    }
    tree.refresh();
    float highest = 0;
    for (const float weight : weights) highest = std::fmax(highest, weight);
    const double total = sum_of(weights);
    CHECK(tree.total() == total, "%.17g and not %.17g", tree.total(), total);
    CHECK(tree.highest() == highest, "%g and not %g", static_cast<double>(tree.highest()),
          static_cast<double>(highest));
    check_draws(tree, weights);
  }
}

// Integers are summed exactly, so that it is known where each position lies.
static void test_exact_places() {
  const uint32_t capacity = 5000;
  SumTree tree;
  CHECK(tree.allocate(capacity, false), "no memory");
  std::vector<uint32_t> owner;
  for (uint32_t slot = 0; slot < capacity; ++slot) {
    const auto weight = static_cast<uint32_t>(random_between(&state, 0, 3));
    tree.set(slot, static_cast<float>(weight));
    owner.insert(owner.end(), weight, slot);
  }
  tree.refresh();
  std::vector<double> positions;
  positions.reserve(owner.size());
  for (size_t k = 0; k < owner.size(); ++k) positions.push_back(static_cast<double>(k) + 0.5);
  std::vector<uint32_t> slots(owner.size());
  tree.find(positions.data(), static_cast<uint32_t>(owner.size()), slots.data());
  CHECK(slots == owner, "positions lie in other slots");
}

int main() {
  for (const uint32_t capacity : {1U, 2U, 7U, 8U, 9U, 63U, 64U, 65U, 511U, 513U, 4097U, 40000U})
    for (int kind = 0; kind < 2; ++kind) test_history(capacity, kind);
  test_exact_places();
  return finish();
}
