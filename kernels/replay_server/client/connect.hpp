// Sockets that are connected to a server.

#ifndef ACCEL_RL_REPLAY_CLIENT_CONNECT_HPP
#define ACCEL_RL_REPLAY_CLIENT_CONNECT_HPP

#include <cstdint>
#include <string>

namespace accel_rl::replay {

// A blocking stream socket; -1 with `why`. The host is an address in numbers.
int connect_unix(const std::string &path, std::string *why);
int connect_tcp(const std::string &host, uint16_t port, std::string *why);
// Microseconds after which a call on it ends without a byte; 0: never.
void limit_waiting(int file, uint64_t timeout_us);

}  // namespace accel_rl::replay

#endif
