// Order in which peers are served: start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996)
// by the time that each has taken.

#ifndef ACCEL_RL_REPLAY_SERVER_SERVICE_TIME_HPP
#define ACCEL_RL_REPLAY_SERVER_SERVICE_TIME_HPP

#include <algorithm>
#include <cstdint>

namespace accel_rl::replay {

class ServiceTime {
 public:
  // Before peers are compared: who asked for nothing has saved up no more than the credit.
  void admit(uint64_t *served_us) const {
    *served_us = std::max(*served_us, now_us_ - std::min(now_us_, credit_us));
  }
  void charge(uint64_t *served_us, uint64_t us) {
    now_us_ = std::max(now_us_, *served_us);
    *served_us += us;
  }

 private:
  static constexpr uint64_t credit_us = 1000;

  uint64_t now_us_ = 0;  // what the one that was served last had taken before
};

}  // namespace accel_rl::replay

#endif
