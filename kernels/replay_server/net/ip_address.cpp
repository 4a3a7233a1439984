#include "ip_address.hpp"

#include <arpa/inet.h>

namespace accel_rl::replay {

namespace {

constexpr IpAddress unspecified{{}}, loopback{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

}  // namespace

bool is_host(const IpAddress &address) {
  if (!address.is_v4())
    return address.bytes[0] != 0xFF && address != unspecified && address != loopback;
  const uint8_t first = address.bytes[IpAddress::prefix_bytes];
  return first != 0 && first != 127 && first < 224;
}

bool parse_address(const char *text, IpAddress *out) {
  std::array<uint8_t, 4> v4;
  if (inet_pton(AF_INET, text, v4.data()) == 1) {
    *out =
        ipv4_address(uint32_t{v4[0]} << 24 | uint32_t{v4[1]} << 16 | uint32_t{v4[2]} << 8 | v4[3]);
    return true;
  }
  return inet_pton(AF_INET6, text, out->bytes.data()) == 1 && !out->is_v4();
}

}  // namespace accel_rl::replay
