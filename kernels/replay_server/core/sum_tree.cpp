#include "sum_tree.hpp"

#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace accel_rl::replay {

namespace {

constexpr uint32_t together = 64;  // descents at a time, so that their misses overlap

uint32_t up(uint32_t count) { return (count + 7) / 8 * 8; }

// The largest double below a positive one: positive doubles are ordered as their bits are.
inline double below(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  --bits;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

// Find the child in which a position lies, by the children's running sums, and make the position
// relative to that child's start. The first running sum above the position belongs to a child with
// a weight.
inline uint32_t choose(const double *running, double *position) {
  double at = *position;
  // A rounded product may reach the sum, past which there is no child.
  if (!(at < running[7])) at = below(running[7]);
#ifdef __SSE2__
  // A comparison that holds is -1 in its lane: the lanes add up to minus the number of sums passed.
  const __m128d wanted = _mm_set1_pd(at);
  __m128i passed = _mm_castpd_si128(_mm_cmple_pd(_mm_load_pd(running), wanted));
  for (int k = 2; k < 8; k += 2)
    passed =
        _mm_add_epi64(passed, _mm_castpd_si128(_mm_cmple_pd(_mm_load_pd(running + k), wanted)));
  passed = _mm_add_epi64(passed, _mm_unpackhi_epi64(passed, passed));
  const auto child = static_cast<uint32_t>(-_mm_cvtsi128_si32(passed));
#else
  uint32_t child = 0;
  for (int k = 0; k < 7; ++k) child += running[k] <= at;
#endif
  // Masked to 0 for the first child: a branch would be mispredicted, and index -1 must not be read.
  uint64_t start;
  std::memcpy(&start, running + (child - (child > 0)), sizeof start);
  start &= -static_cast<uint64_t>(child > 0);
  double from;
  std::memcpy(&from, &start, sizeof from);
  *position = at - from;
  return child;
}

template <typename Number>
void sum_up(const Number *children, double *running) {
  double sum = running[0] = static_cast<double>(children[0]);
  for (int k = 1; k < 8; ++k) running[k] = sum += static_cast<double>(children[k]);
}

float highest_of(const float *children) {
  float highest = children[0];
  for (int k = 1; k < 8; ++k) highest = children[k] > highest ? children[k] : highest;
  return highest;
}

}  // namespace

uint64_t SumTree::bytes_needed(uint32_t capacity, bool maxima) {
  uint64_t bytes = up(capacity) * sizeof(float);
  for (uint32_t nodes = up(capacity) / 8;; nodes = up(nodes) / 8) {
    bytes += uint64_t{up(nodes)} * (maxima ? 12 : 8) + uint64_t{nodes} * (64 + 1 + 4) + 4;
    if (nodes == 1) return bytes;
  }
}

bool SumTree::allocate(uint32_t capacity, bool maxima) {
  has_maxima_ = maxima;
  if (!weights_.allocate(size_t{up(capacity)} * sizeof(float), true)) return false;
  uint32_t nodes = up(capacity) / 8;
  for (depth_ = 0; depth_ == 0 || nodes > 1; ++depth_) {
    if (depth_ > 0) nodes = up(nodes) / 8;
    Level &level = levels_[static_cast<size_t>(depth_)];
    level.nodes = nodes;
    // Sums over weights are quickly made, and their line is read anyway. One more may be pending,
    // where mark() writes before it looks.
    if ((depth_ > 0 && !level.running.allocate(size_t{nodes} * 64, true)) ||
        !level.totals.allocate(size_t{up(nodes)} * sizeof(double), true) ||
        (maxima && !level.maxima.allocate(size_t{up(nodes)} * sizeof(float), true)) ||
        !level.marked.allocate(nodes, true) ||
        !level.pending.allocate((size_t{nodes} + 1) * sizeof(uint32_t), false))
      return false;
    if (nodes == 1) break;
  }
  ++depth_;
  return true;
}

void SumTree::refresh() {
  for (int k = 0; k < depth_; ++k) {
    Level &level = levels_[static_cast<size_t>(k)];
    const uint32_t *pending = level.pending.as<uint32_t>();
    for (uint32_t j = 0; j < level.waiting; ++j) {
      const uint32_t node = pending[j];
      double sums[8];
      double *running = k > 0 ? level.running.as<double>() + size_t{node} * 8 : sums;
      if (k == 0)
        sum_up(weights() + size_t{node} * 8, running);
      else
        sum_up(levels_[static_cast<size_t>(k) - 1].totals.as<double>() + size_t{node} * 8, running);
      level.totals.as<double>()[node] = running[7];
      if (has_maxima_)
        level.maxima.as<float>()[node] = highest_of(
            (k == 0 ? weights() : levels_[static_cast<size_t>(k) - 1].maxima.as<float>()) +
            size_t{node} * 8);
      level.marked.as<uint8_t>()[node] = 0;
      if (k + 1 < depth_) mark(k + 1, node / fan_out);
    }
    level.waiting = 0;
  }
  const Level &top = levels_[static_cast<size_t>(depth_) - 1];
  total_ = *top.totals.as<double>();
  if (has_maxima_) highest_ = *top.maxima.as<float>();
}

void SumTree::find(const double *positions, uint32_t count, uint32_t *slots) const {
  double at[together];
  for (uint32_t first = 0; first < count; first += together) {
    const uint32_t some = count - first < together ? count - first : together;
    uint32_t *nodes = slots + first;
    for (uint32_t k = 0; k < some; ++k) at[k] = positions[first + k], nodes[k] = 0;
    for (int level = depth_ - 1; level > 0; --level) {
      const double *running = levels_[static_cast<size_t>(level)].running.as<double>();
      const char *next = level > 1 ? levels_[static_cast<size_t>(level) - 1].running.as<char>()
                                   : weights_.as<char>();
      const size_t stride = level > 1 ? 64 : 8 * sizeof(float);
      for (uint32_t k = 0; k < some; ++k) {
        nodes[k] = nodes[k] * 8 + choose(running + size_t{nodes[k]} * 8, at + k);
        __builtin_prefetch(next + nodes[k] * stride);
      }
    }
    for (uint32_t k = 0; k < some; ++k) {
      alignas(16) double running[8];
      sum_up(weights() + size_t{nodes[k]} * 8, running);
      nodes[k] = nodes[k] * 8 + choose(running, at + k);
    }
  }
}

}  // namespace accel_rl::replay
