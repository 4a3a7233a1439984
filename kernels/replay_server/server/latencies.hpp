// How long requests took, from their arrival to their reply: a histogram for each operation.

#ifndef ACCEL_RL_REPLAY_SERVER_LATENCIES_HPP
#define ACCEL_RL_REPLAY_SERVER_LATENCIES_HPP

#include <array>
#include <cstdint>

#include "../protocol/frame.hpp"

namespace accel_rl::replay {

struct Latencies {
  static constexpr size_t buckets = 26;  // bucket k: below 2^k us, and not below half of that

  std::array<std::array<uint64_t, buckets>, last_op + 1> counts{};
  std::array<uint64_t, last_op + 1> us{};  // sums

  void add(uint8_t op, uint64_t taken_us) {
    size_t bucket = 0;
    while (bucket + 1 < buckets && taken_us >> bucket > 0) ++bucket;
    ++counts[op][bucket];
    us[op] += taken_us;
  }
};

}  // namespace accel_rl::replay

#endif
