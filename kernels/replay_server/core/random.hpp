// The specified generator: draw k of a seed is a pure function of both.

#ifndef ACCEL_RL_REPLAY_RANDOM_HPP
#define ACCEL_RL_REPLAY_RANDOM_HPP

#include <cstdint>

namespace accel_rl::replay {

// A multiple of 2^-53 in [0, 1): splitmix64's output k + 1, counted from state `seed`.
inline double uniform_draw(uint64_t seed, uint64_t k) {
  uint64_t z = seed + (k + 1) * UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// One of `size` slots, at least 1, from a number in [0, 1).
inline uint32_t uniform_slot(double u, uint32_t size) {
  const auto slot = static_cast<uint32_t>(u * size);
  return slot < size ? slot : size - 1;
}

}  // namespace accel_rl::replay

#endif
