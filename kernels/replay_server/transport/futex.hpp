// Waiting for a word of memory that another process has, too.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_FUTEX_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_FUTEX_HPP

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace accel_rl::replay {

// Sleep until woken, unless the word is not `expected`; ends by a signal or after `most_us`, too.
inline void futex_wait(std::atomic<uint32_t> *word, uint32_t expected, uint32_t most_us) {
  const timespec most = {most_us / 1000000, static_cast<long>(most_us % 1000000) * 1000};
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(word), FUTEX_WAIT, expected, &most, nullptr, 0);
}

// Number of threads woken; below 0 if the kernel has no futex.
inline long futex_wake(std::atomic<uint32_t> *word) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t *>(word), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace accel_rl::replay

#endif
