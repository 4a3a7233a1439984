#include "headers.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint16_t arp_ethernet = 1, arp_request = 1, arp_reply = 2;
constexpr uint8_t hops = 64;
constexpr uint16_t do_not_fragment = 0x4000, more_fragments = 0x2000, fragment_offset = 0x1FFF;

}  // namespace

uint16_t internet_checksum(const uint8_t *bytes, size_t count) {
  uint64_t sum = 0;
  for (; count > 1; bytes += 2, count -= 2) sum += load16(bytes);
  if (count > 0) sum += uint64_t{bytes[0]} << 8;
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

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
  out->sender = load32(bytes + 14);
  out->target = load32(bytes + 24);
  return Defect::none;
}

void write_arp(uint8_t *to, const ArpMessage &arp, const Mac &target_mac) {
  store16(to, arp_ethernet);
  store16(to + 2, static_cast<uint16_t>(EtherType::ipv4));
  to[4] = 6, to[5] = 4;
  store16(to + 6, arp.is_request ? arp_request : arp_reply);
  std::memcpy(to + 8, arp.sender_mac.data(), 6);
  store32(to + 14, arp.sender);
  std::memcpy(to + 18, target_mac.data(), 6);
  store32(to + 24, arp.target);
}

Defect read_ipv4(const Part &part, Ipv4Header *out) {
  const uint8_t *bytes = part.bytes;
  if (part.count < ipv4_bytes || bytes[0] >> 4 != 4) return Defect::malformed;
  const size_t header = size_t{bytes[0] & 0xFu} * 4, total = load16(bytes + 2);
  if (header < ipv4_bytes || header > total || total > part.count) return Defect::malformed;
  if (internet_checksum(bytes, header) != 0) return Defect::bad_checksum;
  if (load16(bytes + 6) & (more_fragments | fragment_offset)) return Defect::fragment;
  if (bytes[8] == 0) return Defect::malformed;  // no hop was left: no router sends that
  out->protocol = bytes[9];
  out->source = load32(bytes + 12);
  out->destination = load32(bytes + 16);
  out->payload = {bytes + header, total - header};
  return Defect::none;
}

void write_ipv4(uint8_t *to, uint32_t source, uint32_t destination, Protocol protocol,
                size_t payload_bytes) {
  std::memset(to, 0, ipv4_bytes);
  to[0] = 4 << 4 | ipv4_bytes / 4;
  store16(to + 2, static_cast<uint16_t>(ipv4_bytes + payload_bytes));
  store16(to + 6, do_not_fragment);  // so that the identification may stay 0
  to[8] = hops;
  to[9] = static_cast<uint8_t>(protocol);
  store32(to + 12, source);
  store32(to + 16, destination);
  store16(to + 10, internet_checksum(to, ipv4_bytes));
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
