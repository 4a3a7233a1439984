// IPv4 and IPv6 addresses as one type.

#ifndef ACCEL_RL_REPLAY_NET_IP_ADDRESS_HPP
#define ACCEL_RL_REPLAY_NET_IP_ADDRESS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>

namespace accel_rl::replay {

// 16 bytes of IPv6; the IPv4 address a.b.c.d is ::ffff:a.b.c.d, which no IPv6 packet carries.
struct IpAddress {
  static constexpr size_t size = 16, prefix_bytes = 12;
  static constexpr std::array<uint8_t, prefix_bytes> v4_prefix = {0, 0, 0, 0, 0,    0,
                                                                  0, 0, 0, 0, 0xFF, 0xFF};

  std::array<uint8_t, size> bytes;

  bool is_v4() const { return std::memcmp(bytes.data(), v4_prefix.data(), prefix_bytes) == 0; }
  bool operator==(const IpAddress &other) const { return bytes == other.bytes; }
  bool operator!=(const IpAddress &other) const { return bytes != other.bytes; }
};

constexpr IpAddress ipv4_address(uint32_t address) {
  return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, static_cast<uint8_t>(address >> 24),
           static_cast<uint8_t>(address >> 16), static_cast<uint8_t>(address >> 8),
           static_cast<uint8_t>(address)}};
}

// An address of one host: not unspecified, loopback, multicast or broadcast.
bool is_host(const IpAddress &address);
// An IPv4 or IPv6 address in numbers; false for other text, and for IPv4 as ::ffff:a.b.c.d.
bool parse_address(const char *text, IpAddress *out);

struct UdpEndpoint {
  IpAddress address;
  uint16_t port;
};

}  // namespace accel_rl::replay

template <>
struct std::hash<accel_rl::replay::IpAddress> {
  size_t operator()(const accel_rl::replay::IpAddress &address) const noexcept {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char *>(address.bytes.data()), address.size});
  }
};

#endif
