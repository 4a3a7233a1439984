#include "endpoint.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>

namespace accel_rl::replay {

bool is_loopback(const sockaddr *address) {
  if (address->sa_family == AF_INET) {
    const auto *v4 = reinterpret_cast<const sockaddr_in *>(address);
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }
  const auto *v6 = reinterpret_cast<const sockaddr_in6 *>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

uint16_t port_of(const sockaddr *address) {
  return ntohs(address->sa_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in *>(address)->sin_port
                   : reinterpret_cast<const sockaddr_in6 *>(address)->sin6_port);
}

bool find_endpoint(const std::string &host, uint16_t port, bool secret, Endpoint *out,
                   std::string *why) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;  // each address once
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0 || !found) {
    *why = "host must be an address in numbers, got \"" + host + "\"";
    return false;
  }
  out->length = found->ai_addrlen;
  std::memcpy(&out->address, found->ai_addr, out->length);
  freeaddrinfo(found);
  if (secret || is_loopback(out->general())) return true;
  *why = "a server on " + host +
         ", which others can reach, must have a secret (secret=, or --secret-file)";
  return false;
}

}  // namespace accel_rl::replay
