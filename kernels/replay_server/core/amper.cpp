#include "amper.hpp"

#include <algorithm>
#include <cmath>

#include "random.hpp"

namespace accel_rl::replay {

namespace {

// As in accel_rl.replay.members: one round is enough where 1 in 7 is a member.
constexpr uint64_t proposals = 10, rounds = 50;
constexpr double least_included = 1e-6;
constexpr int reach_in_groups = 3;  // a radius is at most a group's width; one more for rounding

int group_of(double x, int groups) { return std::min(static_cast<int>(x * groups), groups - 1); }

}  // namespace

bool Amper::allocate(const AmperConfig &config, uint32_t capacity) {
  config_ = config;
  return members_.allocate(size_t{capacity} * sizeof(uint32_t), false);
}

void Amper::begin_query(const SumTree &tree, uint32_t size, uint64_t seed) {
  const uint32_t groups = config_.groups;
  query_.highest = static_cast<double>(tree.highest());
  const double mean = tree.total() / size;
  const double ratio = static_cast<double>(config_.csp_ratio) * query_.highest / (2 * mean);
  query_.reach = std::min(ratio, 1.0) / groups;
  for (uint32_t g = 0; g < groups; ++g) {
    const double value = (g + uniform_draw(seed, g)) / groups, radius = query_.reach * value;
    query_.low[g] = value - radius;
    query_.high[g] = value + radius;
  }
}

bool Amper::matches(float weight) const {
  if (!(weight > 0)) return false;
  const int groups = static_cast<int>(config_.groups);
  const double x = static_cast<double>(weight) / query_.highest;
  const int own = group_of(x, groups);
  const int first = std::max(own - reach_in_groups, 0);
  const int last = std::min(own + reach_in_groups, groups - 1);
  bool found = false;
  for (int g = first; g <= last; ++g) found |= query_.low[g] <= x && x <= query_.high[g];
  return found;
}

// How often calls include a weight, in closed form: see accel_rl.replay.inclusion.ball.
double Amper::included(float weight) const {
  const int groups = static_cast<int>(config_.groups);
  const double x = static_cast<double>(weight) / query_.highest;
  const double low = x / (1 + query_.reach), high = x / std::max(1 - query_.reach, 1e-6);
  const int own = group_of(x, groups);
  double missed = 1;
  for (int g = std::max(own - reach_in_groups, 0); g <= std::min(own + reach_in_groups, groups - 1);
       ++g) {
    const double from = std::max(low, static_cast<double>(g) / groups);
    const double to = std::min(high, static_cast<double>(g + 1) / groups);
    missed *= 1 - std::min(std::max(to - from, 0.0) * groups, 1.0);
  }
  return std::max(1 - missed, least_included);
}

uint32_t Amper::list(const SumTree &tree, uint32_t size, bool matching) {
  auto *members = members_.as<uint32_t>();
  uint32_t count = 0;
  for (uint32_t slot = 0; slot < size; ++slot) {
    const float weight = tree.weights()[slot];
    if (matching ? matches(weight) : weight > 0) members[count++] = slot;
  }
  return count;
}

void Amper::draw(const SumTree &tree, uint32_t size, uint64_t seed, uint32_t batch, uint32_t *slots,
                 double *probabilities) {
  begin_query(tree, size, seed);
  const uint64_t round = proposals * batch;
  uint64_t next = config_.groups, accepted = 0, tried = 0;  // next: number of the next draw
  while (accepted < batch && tried < rounds * round) {
    for (uint64_t k = 0; k < round; ++k) {
      const uint32_t slot = uniform_slot(uniform_draw(seed, next++), size);
      if (!matches(tree.weights()[slot])) continue;
      if (accepted < batch) slots[accepted] = slot;
      ++accepted;
    }
    tried += round;
  }
  double found = static_cast<double>(accepted) / static_cast<double>(tried) * size;
  bool empty = false;
  if (accepted < batch) {
    next = config_.groups + rounds * round;
    uint32_t members = list(tree, size, true);
    found = members;
    empty = members == 0;
    if (empty) members = list(tree, size, false);
    for (uint32_t k = 0; k < batch; ++k)
      slots[k] = members_.as<uint32_t>()[uniform_slot(uniform_draw(seed, next++), members)];
  }
  found = std::max(found, 1.0);
  for (uint32_t k = 0; k < batch; ++k)
    probabilities[k] = empty ? 1.0 / size : included(tree.weights()[slots[k]]) / found;
}

}  // namespace accel_rl::replay
