// A sum tree of 8 children to a node, over float32 weights with sums in double. A node holds the
// running sums of its children in one cache line, so that a descent reads a line of each level.
// Sums are always recomputed from children, left to right, and so do not drift.

#ifndef ACCEL_RL_REPLAY_SUM_TREE_HPP
#define ACCEL_RL_REPLAY_SUM_TREE_HPP

#include <array>
#include <cstdint>

#include "buffer.hpp"

namespace accel_rl::replay {

class SumTree {
 public:
  // False where there is no memory. `maxima`: keep the highest weight, too.
  bool allocate(uint32_t capacity, bool maxima);
  static uint64_t bytes_needed(uint32_t capacity, bool maxima);

  // Weights are finite and at least 0. What was set shows in sums after refresh().
  void set(uint32_t slot, float weight) {
    weights_.as<float>()[slot] = weight;
    mark(0, slot / fan_out);
  }
  void refresh();

  const float *weights() const { return weights_.as<float>(); }
  double total() const { return total_; }
  float highest() const { return highest_; }  // 0 without maxima

  // The slots in which positions [count] in [0, total) lie; total() must be above 0. Positions
  // at or above it count as just below it. No slot of weight 0 is ever found.
  void find(const double *positions, uint32_t count, uint32_t *slots) const;

  // Fetch what find() will read first and set() will write.
  void prefetch(uint32_t slot) const { __builtin_prefetch(weights_.as<float>() + slot); }

 private:
  static constexpr uint32_t fan_out = 8;
  static constexpr int most_levels = 10;  // 8^11 is above the largest capacity

  // Level 0 sums weights. A node's sums are those of its 8 children, its own is the last.
  struct Level {
    Buffer running;  // [nodes][8] double: running sums over children
    Buffer totals;   // [nodes rounded up to 8] double
    Buffer maxima;   // [nodes rounded up to 8] float
    Buffer marked;   // [nodes] uint8: is to be recomputed
    Buffer pending;  // [nodes] uint32: those marked
    uint32_t nodes = 0;
    uint32_t waiting = 0;  // in pending
  };

  // Writes before it looks: a branch would be mispredicted. `pending` has an entry to spare for it.
  void mark(int level, uint32_t node) {
    Level &at = levels_[static_cast<size_t>(level)];
    uint8_t &is_marked = at.marked.as<uint8_t>()[node];
    at.pending.as<uint32_t>()[at.waiting] = node;
    at.waiting += is_marked ^ 1U;
    is_marked = 1;
  }

  Buffer weights_;  // float [capacity rounded up to 8]
  std::array<Level, most_levels> levels_;
  int depth_ = 0;  // levels
  bool has_maxima_ = false;
  double total_ = 0;
  float highest_ = 0;
};

}  // namespace accel_rl::replay

#endif
