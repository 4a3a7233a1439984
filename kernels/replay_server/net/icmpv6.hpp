// Neighbour discovery (RFC 4861) as it lies in ICMPv6: solicitations and advertisements.

#ifndef ACCEL_RL_REPLAY_NET_ICMPV6_HPP
#define ACCEL_RL_REPLAY_NET_ICMPV6_HPP

#include "headers.hpp"

namespace accel_rl::replay {

enum class Icmpv6 : uint8_t {
  echo_request = 128,
  echo_reply = 129,
  neighbour_solicitation = 135,
  neighbour_advertisement = 136
};

constexpr uint8_t neighbour_hops = 255;  // a router would have taken one: it comes from a neighbour
// The message with one option, an Ethernet address.
constexpr size_t neighbour_bytes = 32;
constexpr size_t neighbour_packet_bytes = ethernet_bytes + ipv6_bytes + neighbour_bytes;

constexpr IpAddress all_nodes{{0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

struct NeighbourMessage {
  bool is_solicitation;
  IpAddress target;
  bool has_mac;
  Mac mac;  // of the sender of a solicitation, the target of an advertisement
};

// 0 where the checksum in the message is right.
uint16_t icmpv6_checksum(const IpHeader &packet);

// True for a solicitation or an advertisement, whatever else is wrong with it.
bool is_neighbour_message(const IpHeader &packet);
Defect read_neighbour(const IpHeader &packet, NeighbourMessage *out);
// An Ethernet packet of neighbour_packet_bytes, with the message's `mac` as option and source.
void write_neighbour(uint8_t *to, const Mac &destination_mac, const IpAddress &source,
                     const IpAddress &destination, const NeighbourMessage &message);

// Multicast group in which a host with the address is asked for it (RFC 4291, 2.7.1).
IpAddress solicited_node(const IpAddress &address);
// Ethernet address of an IPv6 multicast group (RFC 2464, 7).
Mac group_mac(const IpAddress &group);

}  // namespace accel_rl::replay

#endif
