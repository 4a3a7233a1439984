// Addresses of sockets of the network.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_ENDPOINT_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_ENDPOINT_HPP

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace accel_rl::replay {

struct Endpoint {
  sockaddr_storage address = {};
  socklen_t length = 0;

  const sockaddr *general() const { return reinterpret_cast<const sockaddr *>(&address); }
};

// Only addresses of IPv4 and IPv6.
bool is_loopback(const sockaddr *address);
uint16_t port_of(const sockaddr *address);

// Where a server shall listen: an address in numbers, beyond the loopback only if `secret` says
// that clients have to prove one. False with `why`.
bool find_endpoint(const std::string &host, uint16_t port, bool secret, Endpoint *out,
                   std::string *why);

}  // namespace accel_rl::replay

#endif
