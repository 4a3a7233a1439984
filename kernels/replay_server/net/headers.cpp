#include "headers.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint16_t arp_ethernet = 1, arp_request = 1, arp_reply = 2;
constexpr uint8_t ipv6_fragment = 44;  // next header
constexpr uint16_t do_not_fragment = 0x4000, more_fragments = 0x2000, fragment_offset = 0x1FFF;

void store_v4(uint8_t *to, const IpAddress &address) {
  std::memcpy(to, address.bytes.data() + IpAddress::prefix_bytes, 4);
}

void write_ipv4(uint8_t *to, const IpAddress &source, const IpAddress &destination,
                Protocol protocol, uint8_t hops, size_t payload_bytes) {
  std::memset(to, 0, ipv4_bytes);
  to[0] = 4 << 4 | ipv4_bytes / 4;
  store16(to + 2, static_cast<uint16_t>(ipv4_bytes + payload_bytes));
  store16(to + 6, do_not_fragment);  // so that the identification may stay 0
  to[8] = hops;
  to[9] = static_cast<uint8_t>(protocol);
  store_v4(to + 12, source);
  store_v4(to + 16, destination);
  store16(to + 10, internet_checksum(to, ipv4_bytes));
}

void write_ipv6(uint8_t *to, const IpAddress &source, const IpAddress &destination,
                Protocol protocol, uint8_t hops, size_t payload_bytes) {
  std::memset(to, 0, 4);
  to[0] = 6 << 4;
  store16(to + 4, static_cast<uint16_t>(payload_bytes));
  to[6] = static_cast<uint8_t>(protocol);
  to[7] = hops;
  std::memcpy(to + 8, source.bytes.data(), IpAddress::size);
  std::memcpy(to + 24, destination.bytes.data(), IpAddress::size);
}

}  // namespace

Defect read_ethernet(const Part &packet, EthernetHeader *out) {
  if (packet.count < ethernet_bytes) return Defect::malformed;
  std::memcpy(out->destination.data(), packet.bytes, 6);
  std::memcpy(out->source.data(), packet.bytes + 6, 6);
  out->type = load16(packet.bytes + 12);
  out->payload = {packet.bytes + ethernet_bytes, packet.count - ethernet_bytes};
  return Defect::none;
}

void write_ethernet(uint8_t *to, const Mac &destination, const Mac &source, EtherType type) {
  std::memcpy(to, destination.data(), 6);
  std::memcpy(to + 6, source.data(), 6);
  store16(to + 12, static_cast<uint16_t>(type));
}

Defect read_arp(const Part &part, ArpMessage *out) {
  const uint8_t *bytes = part.bytes;
  if (part.count < arp_bytes || load16(bytes) != arp_ethernet ||
      load16(bytes + 2) != static_cast<uint16_t>(EtherType::ipv4) || bytes[4] != 6 || bytes[5] != 4)
    return Defect::malformed;
  const uint16_t operation = load16(bytes + 6);
  if (operation != arp_request && operation != arp_reply) return Defect::malformed;
  out->is_request = operation == arp_request;
  std::memcpy(out->sender_mac.data(), bytes + 8, 6);
  out->sender = ipv4_address(load32(bytes + 14));
  out->target = ipv4_address(load32(bytes + 24));
  return Defect::none;
}

void write_arp(uint8_t *to, const ArpMessage &arp, const Mac &target_mac) {
  store16(to, arp_ethernet);
  store16(to + 2, static_cast<uint16_t>(EtherType::ipv4));
  to[4] = 6, to[5] = 4;
  store16(to + 6, arp.is_request ? arp_request : arp_reply);
  std::memcpy(to + 8, arp.sender_mac.data(), 6);
  store_v4(to + 14, arp.sender);
  std::memcpy(to + 18, target_mac.data(), 6);
  store_v4(to + 24, arp.target);
}

Defect read_ipv4(const Part &part, IpHeader *out) {
  const uint8_t *bytes = part.bytes;
  if (part.count < ipv4_bytes || bytes[0] >> 4 != 4) return Defect::malformed;
  const size_t header = size_t{bytes[0] & 0xFu} * 4, total = load16(bytes + 2);
  if (header < ipv4_bytes || header > total || total > part.count) return Defect::malformed;
  if (internet_checksum(bytes, header) != 0) return Defect::bad_checksum;
  if (load16(bytes + 6) & (more_fragments | fragment_offset)) return Defect::fragment;
  if (bytes[8] == 0) return Defect::malformed;  // no hop was left: no router sends that
  out->hops = bytes[8];
  out->protocol = bytes[9];
  out->source = ipv4_address(load32(bytes + 12));
  out->destination = ipv4_address(load32(bytes + 16));
  out->payload = {bytes + header, total - header};
  return Defect::none;
}

Defect read_ipv6(const Part &part, IpHeader *out) {
  const uint8_t *bytes = part.bytes;
  if (part.count < ipv6_bytes || bytes[0] >> 4 != 6) return Defect::malformed;
  const size_t payload = load16(bytes + 4);
  if (payload > part.count - ipv6_bytes || bytes[7] == 0) return Defect::malformed;
  out->protocol = bytes[6];
  out->hops = bytes[7];
  std::memcpy(out->source.bytes.data(), bytes + 8, IpAddress::size);
  std::memcpy(out->destination.bytes.data(), bytes + 24, IpAddress::size);
  // Would be taken for an IPv4 host from here on.
  if (out->source.is_v4() || out->destination.is_v4()) return Defect::malformed;
  if (out->protocol == ipv6_fragment) return Defect::fragment;
  out->payload = {bytes + ipv6_bytes, payload};
  return Defect::none;
}

size_t write_ip(uint8_t *to, const Mac &destination_mac, const Mac &source_mac,
                const IpAddress &source, const IpAddress &destination, Protocol protocol,
                uint8_t hops, size_t payload_bytes) {
  const bool is_v4 = destination.is_v4();
  write_ethernet(to, destination_mac, source_mac, is_v4 ? EtherType::ipv4 : EtherType::ipv6);
  (is_v4 ? write_ipv4 : write_ipv6)(to + ethernet_bytes, source, destination, protocol, hops,
                                    payload_bytes);
  return ethernet_bytes + ip_bytes(destination);
}

Defect read_udp(const Part &part, UdpHeader *out) {
  if (part.count < udp_bytes) return Defect::malformed;
  const size_t total = load16(part.bytes + 4);
  if (total < udp_bytes || total > part.count) return Defect::malformed;
  out->source = load16(part.bytes);
  out->destination = load16(part.bytes + 2);
  out->payload = {part.bytes + udp_bytes, total - udp_bytes};
  return Defect::none;
}

void write_udp(uint8_t *to, uint16_t source, uint16_t destination, size_t payload_bytes) {
  store16(to, source);
  store16(to + 2, destination);
  store16(to + 4, static_cast<uint16_t>(udp_bytes + payload_bytes));
  store16(to + 6, 0);
}

}  // namespace accel_rl::replay
