// The Internet's checksum (RFC 1071).

#ifndef ACCEL_RL_REPLAY_NET_CHECKSUM_HPP
#define ACCEL_RL_REPLAY_NET_CHECKSUM_HPP

#include <cstddef>
#include <cstdint>

#include "ip_address.hpp"

namespace accel_rl::replay {

enum class Protocol : uint8_t { icmp = 1, udp = 17, icmpv6 = 58 };

// Sums bytes that lie in several parts, of odd lengths too.
class Checksum {
 public:
  void add(const uint8_t *bytes, size_t count);
  // The pseudo header of IPv6 (RFC 8200, 8.1) for a payload of so many bytes.
  void add_pseudo_header(const IpAddress &source, const IpAddress &destination, Protocol protocol,
                         size_t payload_bytes);
  // 0 over bytes that contain their own checksum.
  uint16_t value() const;

 private:
  // Of 16-bit words in the machine's byte order: the sum does not depend on it, but for the order
  // of its own bytes.
  uint64_t sum_ = 0;
  bool odd_ = false;  // an odd number of bytes so far
};

uint16_t internet_checksum(const uint8_t *bytes, size_t count);

}  // namespace accel_rl::replay

#endif
