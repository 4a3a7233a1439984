#include "amper.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "random.hpp"

namespace accel_rl::replay {

namespace {

// As in accel_rl.replay.members: one round is enough where 1 in 7 is a member.
constexpr uint64_t proposals = 10, rounds = 50;
constexpr double least_included = 1e-6;
constexpr int reach_in_groups = 3;  // a radius is at most a group's width; one more for rounding
constexpr uint32_t block_slots = 4096;

// The finaliser of MurmurHash3 (Appleby), a bijection of 32 bits.
uint32_t mixed(uint32_t x) {
  x = (x ^ (x >> 16)) * UINT32_C(0x85EBCA6B);
  x = (x ^ (x >> 13)) * UINT32_C(0xC2B2AE35);
  return x ^ (x >> 16);
}

// From -1 to 1, a hash of slot and weight: that of accel_rl.replay.amper.spread.
double offset_of(float weight, uint32_t slot) {
  uint32_t bits = 0;
  std::memcpy(&bits, &weight, sizeof bits);
  return static_cast<double>(mixed(bits ^ slot * UINT32_C(0x9E3779B1)) >> 8) * 0x1p-23 - 1;
}

// Weights above the highest of a search's beginning count as that.
int group_of(double x, int groups) {
  return x < 1 ? std::min(static_cast<int>(x * groups), groups - 1) : groups - 1;
}

}  // namespace

void AmperSearch::begin(const AmperConfig &config, const SumTree &tree, uint32_t size,
                        uint64_t seed, uint32_t batch) {
  stage_ = Stage::trying;
  groups_ = config.groups, size_ = size, batch_ = batch, seed_ = seed;
  drawn_ = 0, tried_ = accepted_ = 0, empty_ = false;
  highest_ = static_cast<double>(tree.highest());
  const double mean = tree.total() / size;
  const double end = 1 + 1.0 / groups_;  // of the weights that are moved apart, over the highest
  const double ratio = static_cast<double>(config.csp_ratio) * highest_ * end / (2 * mean);
  reach_ = std::min(ratio, 1.0) / groups_;
  scale_ = (1 - reach_) / end;
  for (uint32_t g = 0; g < groups_; ++g) {
    const double value = (g + uniform_draw(seed, g)) / groups_, radius = reach_ * value;
    low_[g] = value - radius;
    high_[g] = value + radius;
  }
}

// The weight's place in the groups' range [0, 1]: equal ones are moved apart by up to a group.
double AmperSearch::place_of(float weight, uint32_t slot) const {
  const double x = static_cast<double>(weight) / highest_;
  return (x + offset_of(weight, slot) * std::min(x, 1.0 / groups_)) * scale_;
}

bool AmperSearch::matches(float weight, uint32_t slot) const {
  if (!(weight > 0)) return false;
  const int groups = static_cast<int>(groups_);
  const double x = place_of(weight, slot);
  const int own = group_of(x, groups);
  const int first = std::max(own - reach_in_groups, 0);
  const int last = std::min(own + reach_in_groups, groups - 1);
  bool found = false;
  for (int g = first; g <= last; ++g) found |= low_[g] <= x && x <= high_[g];
  return found;
}

// How often calls include an item, in closed form: see accel_rl.replay.inclusion.ball.
double AmperSearch::included(float weight, uint32_t slot) const {
  const int groups = static_cast<int>(groups_);
  const double x = place_of(weight, slot);
  const double low = x / (1 + reach_), high = x / std::max(1 - reach_, 1e-6);
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

bool AmperSearch::step(const SumTree &tree, uint64_t work, uint32_t *slots, double *probabilities) {
  double found = 0;
  switch (stage_) {
    case Stage::trying:
      if (!try_slots(tree, work, slots, probabilities)) return false;
      found = static_cast<double>(accepted_) / static_cast<double>(tried_) * size_;
      break;
    case Stage::counting:
      count_members(tree, work);
      return false;
    case Stage::picking:
      if (!pick_members(tree, work, slots, probabilities)) return false;
      found = members_;
      break;
  }
  found = std::max(found, 1.0);
  for (uint32_t k = 0; k < batch_; ++k)
    probabilities[k] = empty_ ? 1.0 / size_ : probabilities[k] / found;
  return true;
}

// Whether the batch is full; a round is gone through to its end, as it says how many match.
bool AmperSearch::try_slots(const SumTree &tree, uint64_t work, uint32_t *slots,
                            double *inclusion) {
  const uint64_t round = proposals * batch_;
  while (work > 0) {
    const uint64_t some = std::min(round - tried_ % round, work);
    work -= some;
    for (uint64_t k = 0; k < some; ++k) {
      const uint32_t slot = uniform_slot(uniform_draw(seed_, groups_ + tried_++), size_);
      const float weight = tree.weights()[slot];
      if (!matches(weight, slot)) continue;
      ++accepted_;
      if (drawn_ == batch_) continue;
      slots[drawn_] = slot;
      inclusion[drawn_++] = included(weight, slot);
    }
    if (tried_ % round != 0) continue;
    if (accepted_ >= batch_) return true;
    if (tried_ < rounds * round) continue;
    counts_.assign((size_ + block_slots - 1) / block_slots, 0);
    stage_ = Stage::counting, drawn_ = block_ = slot_ = members_ = 0;
    return false;
  }
  return false;
}

void AmperSearch::count_members(const SumTree &tree, uint64_t work) {
  const uint32_t last = slot_ + static_cast<uint32_t>(std::min<uint64_t>(work, size_ - slot_));
  for (; slot_ < last; ++slot_) {
    const bool member = is_member(tree.weights()[slot_], slot_);
    counts_[slot_ / block_slots] += member;
    members_ += member;
  }
  if (slot_ < size_) return;
  slot_ = 0;
  if (members_ == 0 && !empty_) {  // again, of all that have a weight
    empty_ = true;
    return;
  }
  order_.clear();
  order_.reserve(batch_);
  for (uint32_t k = 0; k < batch_; ++k)
    order_.push_back({uniform_slot(uniform_draw(seed_, groups_ + tried_ + k), members_), k});
  std::sort(order_.begin(), order_.end(),
            [](const Pick &one, const Pick &other) { return one.rank < other.rank; });
  stage_ = Stage::picking, block_ = before_ = seen_ = 0;
}

bool AmperSearch::pick_members(const SumTree &tree, uint64_t work, uint32_t *slots,
                               double *inclusion) {
  for (; drawn_ < batch_; ++drawn_) {
    const Pick &pick = order_[drawn_];
    while (block_ + 1 < counts_.size() && pick.rank - before_ >= counts_[block_]) {
      before_ += counts_[block_++];
      slot_ = block_ * block_slots, seen_ = 0;
    }
    const auto end =
        static_cast<uint32_t>(std::min<uint64_t>(size_, (uint64_t{block_} + 1) * block_slots));
    uint32_t slot = slot_;  // of the member that has the rank, which may be drawn again
    for (; slot < end; ++slot) {
      if (work == 0) return slot_ = slot, false;
      --work;
      if (!is_member(tree.weights()[slot], slot)) continue;
      if (seen_ == pick.rank - before_) break;
      ++seen_;
    }
    slot_ = slot;
    // Fewer than were counted, as weights changed since.
    if (slot == end) slot = next_member(tree, block_ * block_slots);
    slots[pick.place] = slot;
    inclusion[pick.place] = included(tree.weights()[slot], slot);
  }
  return true;
}

uint32_t AmperSearch::next_member(const SumTree &tree, uint32_t slot) const {
  for (uint32_t k = 0; k < size_; ++k, slot = slot + 1 < size_ ? slot + 1 : 0)
    if (is_member(tree.weights()[slot], slot)) break;
  return slot;
}

}  // namespace accel_rl::replay
