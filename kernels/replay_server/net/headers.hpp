// Ethernet, ARP, IPv4, IPv6 and UDP as they lie in packets: big-endian, at any address. Every
// length is checked against the bytes that came before it is used.

#ifndef ACCEL_RL_REPLAY_NET_HEADERS_HPP
#define ACCEL_RL_REPLAY_NET_HEADERS_HPP

#include <cstring>

#include "checksum.hpp"
#include "ip_address.hpp"
#include "nic.hpp"

namespace accel_rl::replay {

constexpr size_t ethernet_bytes = 14, arp_bytes = 28, udp_bytes = 8;
constexpr size_t ipv4_bytes = 20, ipv6_bytes = 40;
constexpr uint8_t usual_hops = 64;
constexpr size_t least_packet_bytes = 60;  // of Ethernet without its checksum; shorter are filled
constexpr Mac broadcast_mac = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
inline bool is_group(const Mac &mac) { return mac[0] & 1; }  // multicast or broadcast

enum class EtherType : uint16_t { ipv4 = 0x0800, arp = 0x0806, ipv6 = 0x86DD };

inline uint16_t load16(const uint8_t *from) {
  return static_cast<uint16_t>(from[0] << 8 | from[1]);
}
inline uint32_t load32(const uint8_t *from) {
  return uint32_t{load16(from)} << 16 | load16(from + 2);
}
inline void store16(uint8_t *to, uint16_t value) {
  to[0] = static_cast<uint8_t>(value >> 8), to[1] = static_cast<uint8_t>(value);
}
inline void store32(uint8_t *to, uint32_t value) {
  store16(to, static_cast<uint16_t>(value >> 16)), store16(to + 2, static_cast<uint16_t>(value));
}

struct EthernetHeader {
  Mac destination, source;
  uint16_t type;
  Part payload;
};

// Defect of a packet.
enum class Defect : uint8_t { none, malformed, bad_checksum, fragment };

Defect read_ethernet(const Part &packet, EthernetHeader *out);
void write_ethernet(uint8_t *to, const Mac &destination, const Mac &source, EtherType type);

struct ArpMessage {
  bool is_request;
  Mac sender_mac;
  IpAddress sender, target;
};

// Parse an ARP request or reply of IPv4 over Ethernet; everything else is malformed.
Defect read_arp(const Part &part, ArpMessage *out);
// `target_mac`: of a reply.
void write_arp(uint8_t *to, const ArpMessage &arp, const Mac &target_mac);

struct IpHeader {
  IpAddress source, destination;
  uint8_t protocol, hops;
  Part payload;
};

// Bytes behind the packet's own length are Ethernet's padding, and are left out.
Defect read_ipv4(const Part &part, IpHeader *out);
// Extension headers count as payload, of their own protocol.
Defect read_ipv6(const Part &part, IpHeader *out);

// Bytes of the IP header between hosts with such addresses.
inline size_t ip_bytes(const IpAddress &address) {
  return address.is_v4() ? ipv4_bytes : ipv6_bytes;
}
// The headers of Ethernet and IP for `payload_bytes`, which are at most 65,515; returns their size.
// Both addresses are of one family.
size_t write_ip(uint8_t *to, const Mac &destination_mac, const Mac &source_mac,
                const IpAddress &source, const IpAddress &destination, Protocol protocol,
                uint8_t hops, size_t payload_bytes);

struct UdpHeader {
  uint16_t source, destination;
  Part payload;
};

// The checksum is not looked at: a kernel may leave it to a device that there is not, and a
// datagram of the replay protocol has a better one of its own.
Defect read_udp(const Part &part, UdpHeader *out);
// Without a checksum, as IPv4 allows; IPv6 demands one.
void write_udp(uint8_t *to, uint16_t source, uint16_t destination, size_t payload_bytes);

}  // namespace accel_rl::replay

#endif
