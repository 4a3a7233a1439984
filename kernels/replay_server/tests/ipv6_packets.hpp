// IPv6 packets as hosts send them, built by hand, with checksums by their definition.

#ifndef ACCEL_RL_REPLAY_TESTS_IPV6_PACKETS_HPP
#define ACCEL_RL_REPLAY_TESTS_IPV6_PACKETS_HPP

#include <initializer_list>
#include <string>
#include <vector>

#include "ip_address.hpp"
#include "wires.hpp"

namespace ipv6_packets {

using namespace wires;

constexpr IpAddress asker{{0xFD, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0A, 0, 1}};
constexpr IpAddress self{{0xFD, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0B, 0, 2}};
constexpr IpAddress self_group{{0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, 0x0B, 0, 2}};
constexpr IpAddress nobody{{}};
inline const Mac asker_mac{2, 0, 0, 0, 0, 0x0A}, self_mac{2, 0, 0, 0, 0, 0x0B};
inline const Mac self_group_mac{0x33, 0x33, 0xFF, 0x0B, 0, 2};
constexpr uint16_t port = 7077;
constexpr uint8_t udp = 17, icmpv6 = 58;

using Bytes = std::vector<uint8_t>;

inline Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes whole;
  for (const Bytes &each : parts) whole.insert(whole.end(), each.begin(), each.end());
  return whole;
}
inline Bytes of(const IpAddress &address) { return {address.bytes.begin(), address.bytes.end()}; }
inline Bytes of(const Mac &mac) { return {mac.begin(), mac.end()}; }
inline Bytes of(const std::string &text) { return {text.begin(), text.end()}; }
inline uint8_t low(size_t value) { return static_cast<uint8_t>(value); }
inline uint8_t high(size_t value) { return static_cast<uint8_t>(value >> 8); }

// The checksum over pseudo header and payload, word by word.
inline uint16_t sum_of(const IpAddress &source, const IpAddress &destination, uint8_t protocol,
                       const Bytes &payload) {
  Bytes all = joined({of(source),
                      of(destination),
                      {0, 0, high(payload.size()), low(payload.size()), 0, 0, 0, protocol},
                      payload});
  if (all.size() % 2) all.push_back(0);
  uint32_t sum = 0;
  for (size_t k = 0; k < all.size(); k += 2) {
    sum += static_cast<uint32_t>(all[k] << 8 | all[k + 1]);
    if (sum > 0xFFFF) sum -= 0xFFFF;
  }
  return static_cast<uint16_t>(0xFFFF - sum);
}

// A packet as a host would send it; `at`: where the payload has its checksum.
struct Sent {
  Mac to = self_mac, from = asker_mac;
  IpAddress source = asker, destination = self;
  uint8_t protocol = icmpv6, hops = 255;
  Bytes payload;
  size_t at = 2;

  Packet packet() const {
    Bytes summed = payload;
    if (summed.size() >= at + 2) {
      const uint16_t sum = sum_of(source, destination, protocol, summed);
      summed[at] = high(sum), summed[at + 1] = low(sum);
    }
    return joined({of(to),
                   of(from),
                   {0x86, 0xDD, 0x60, 0, 0, 0},
                   {high(summed.size()), low(summed.size()), protocol, hops},
                   of(source),
                   of(destination),
                   summed});
  }
};

inline Sent solicitation() {
  Sent sent;
  sent.to = self_group_mac, sent.destination = self_group;
  sent.payload = joined({{135, 0, 0, 0, 0, 0, 0, 0}, of(self), {1, 1}, of(asker_mac)});
  return sent;
}
inline Sent advertisement() {
  Sent sent;
  sent.payload = joined({{136, 0, 0, 0, 0x60, 0, 0, 0}, of(asker), {2, 1}, of(asker_mac)});
  return sent;
}
inline Sent echo() {
  Sent sent;
  sent.hops = 64;
  sent.payload = joined({{128, 0, 0, 0, 0x12, 0x34, 0, 7}, of("accel_rl!")});
  return sent;
}
inline Sent datagram(const std::string &text = "a datagram of 23 bytes.") {
  Sent sent;
  sent.protocol = udp, sent.hops = 64, sent.at = 6;
  const size_t bytes = 8 + text.size();
  sent.payload =
      joined({{0x9C, 0x40, high(port), low(port), high(bytes), low(bytes), 0, 0}, of(text)});
  return sent;
}

}  // namespace ipv6_packets

#endif
