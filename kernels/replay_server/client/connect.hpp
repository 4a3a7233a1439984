// Sockets that are connected to a server.

#ifndef ACCEL_RL_REPLAY_CLIENT_CONNECT_HPP
#define ACCEL_RL_REPLAY_CLIENT_CONNECT_HPP

#include <cstdint>
#include <string>

#include "link.hpp"

namespace accel_rl::replay {

// Whether a call on a socket that waits, and has failed, is to be made again: a signal has ended
// it, and there is time left. If there is none, errno becomes ETIMEDOUT.
class Retry {
 public:
  // 0 microseconds: there is always time.
  Retry(uint64_t timeout_us, const Link::KeepWaiting &keep_waiting);
  bool operator()() const;

 private:
  uint64_t end_us_;
  const Link::KeepWaiting &keep_waiting_;
};

// A blocking stream socket, whose calls end after so many microseconds; 0: never. -1 with `why`.
// The host is an address in numbers.
int connect_unix(const std::string &path, uint64_t timeout_us,
                 const Link::KeepWaiting &keep_waiting, std::string *why);
int connect_tcp(const std::string &host, uint16_t port, uint64_t timeout_us,
                const Link::KeepWaiting &keep_waiting, std::string *why);
// Microseconds after which a call on it ends without a byte; 0: never.
void limit_waiting(int file, uint64_t timeout_us);

}  // namespace accel_rl::replay

#endif
