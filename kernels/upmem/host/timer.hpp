// Time of the host's work.

#ifndef ACCEL_RL_UPMEM_TIMER_HPP
#define ACCEL_RL_UPMEM_TIMER_HPP

#include <chrono>

namespace accel_rl::upmem {

// Adds the time until it goes to a sum.
class Timer {
 public:
  explicit Timer(double &sum) : sum_(sum) {}
  ~Timer() {
    const auto now = std::chrono::steady_clock::now();
    sum_ += std::chrono::duration<double>(now - start_).count();
  }

 private:
  double &sum_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace accel_rl::upmem

#endif
