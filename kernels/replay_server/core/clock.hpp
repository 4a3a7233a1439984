// Clocks: a coarse one that connections and requests are timed by, as it is read at every turn.

#ifndef ACCEL_RL_REPLAY_CLOCK_HPP
#define ACCEL_RL_REPLAY_CLOCK_HPP

#include <time.h>

#include <cstdint>

namespace accel_rl::replay {

inline uint64_t clock_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

inline uint64_t clock_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace accel_rl::replay

#endif
