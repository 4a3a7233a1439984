// How long requests took: from their arrival to their reply, a histogram for each operation; and
// which of them took the server long.

#ifndef ACCEL_RL_REPLAY_SERVER_LATENCIES_HPP
#define ACCEL_RL_REPLAY_SERVER_LATENCIES_HPP

#include <time.h>

#include <array>
#include <cstdint>
#include <deque>
#include <utility>

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

struct SlowRequest {
  uint64_t at_ms;  // of the system's clock, from 1970
  uint64_t us;     // that it took, without waiting for the limiter
  uint64_t session;
  uint32_t bytes;
  uint16_t table;
  uint8_t op;
};

// The newest ones.
class SlowRequests {
 public:
  void add(const Header &header, uint64_t us) {
    if (kept_.size() == most) kept_.pop_front();
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const auto at_ms = static_cast<uint64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
    kept_.push_back({at_ms, us, header.session, header.length, header.table, header.op});
  }
  std::deque<SlowRequest> take() { return std::exchange(kept_, {}); }

 private:
  static constexpr size_t most = 1000;

  std::deque<SlowRequest> kept_;
};

}  // namespace accel_rl::replay

#endif
