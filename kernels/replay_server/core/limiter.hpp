// How far drawing may run ahead of inserting, and the other way round. Reverb's semantics.

#ifndef ACCEL_RL_REPLAY_LIMITER_HPP
#define ACCEL_RL_REPLAY_LIMITER_HPP

#include <cstdint>

#include "schema.hpp"

namespace accel_rl::replay {

class Limiter {
 public:
  Limiter() = default;
  explicit Limiter(const LimiterConfig &config) : config_(config) {}

  // `size`: items held before. Until min_size is reached, inserting is always allowed.
  bool can_insert(uint64_t size, uint64_t count) const {
    if (!config_.active || size + count <= config_.min_size) return true;
    return diff(inserts_ + count, samples_) <= config_.max_diff;
  }
  bool can_sample(uint64_t size, uint64_t count) const {
    if (size < config_.min_size) return false;
    return !config_.active || diff(inserts_, samples_ + count) >= config_.min_diff;
  }
  // Whether no number of calls by others would ever let that in which cannot go now. A table is
  // filled up to min_size without regard to max_diff, and samples take diff down to min_diff.
  bool never_inserts(uint64_t size, uint64_t count) const {
    return !can_insert(size, count) && static_cast<double>(count) * config_.samples_per_insert >
                                           config_.max_diff - config_.min_diff;
  }
  bool never_samples(uint64_t size, uint64_t count) const {
    if (!config_.active || can_sample(size, count)) return false;
    const double filled = static_cast<double>(config_.min_size) * config_.samples_per_insert;
    const double most = filled > config_.max_diff ? filled : config_.max_diff;
    return static_cast<double>(count) > most - config_.min_diff;
  }
  void inserted(uint64_t count) { inserts_ += count; }
  void sampled(uint64_t count) { samples_ += count; }

  uint64_t inserts() const { return inserts_; }
  uint64_t samples() const { return samples_; }
  void restore(uint64_t inserts, uint64_t samples) { inserts_ = inserts, samples_ = samples; }

 private:
  double diff(uint64_t inserts, uint64_t samples) const {
    return static_cast<double>(inserts) * config_.samples_per_insert - static_cast<double>(samples);
  }

  LimiterConfig config_;
  uint64_t inserts_ = 0, samples_ = 0;  // items
};

}  // namespace accel_rl::replay

#endif
