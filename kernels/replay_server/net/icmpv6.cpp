#include "icmpv6.hpp"

namespace accel_rl::replay {

namespace {

constexpr size_t target_offset = 8, options_offset = 24, mac_option_bytes = 8;
constexpr uint8_t source_mac_option = 1, target_mac_option = 2;
constexpr uint8_t solicited_flag = 0x40, override_flag = 0x20;
constexpr IpAddress unspecified{{}};

// Read the Ethernet address among the options; others are skipped.
Defect read_options(const Part &options, uint8_t wanted, NeighbourMessage *out) {
  out->has_mac = false;
  for (size_t at = 0; at < options.count;) {
    if (options.count - at < 2) return Defect::malformed;
    const size_t bytes = size_t{options.bytes[at + 1]} * 8;
    if (bytes == 0 || bytes > options.count - at) return Defect::malformed;
    if (options.bytes[at] == wanted) {
      if (bytes != mac_option_bytes) return Defect::malformed;
      std::memcpy(out->mac.data(), options.bytes + at + 2, out->mac.size());
      out->has_mac = true;
    }
    at += bytes;
  }
  return Defect::none;
}

}  // namespace

uint16_t icmpv6_checksum(const IpHeader &packet) {
  const Part &message = packet.payload;
  Checksum sum;
  sum.add_pseudo_header(packet.source, packet.destination, Protocol::icmpv6, message.count);
  sum.add(message.bytes, message.count);
  return sum.value();
}

bool is_neighbour_message(const IpHeader &packet) {
  if (packet.protocol != static_cast<uint8_t>(Protocol::icmpv6) || packet.payload.count == 0)
    return false;
  const auto type = static_cast<Icmpv6>(packet.payload.bytes[0]);
  return type == Icmpv6::neighbour_solicitation || type == Icmpv6::neighbour_advertisement;
}

Defect read_neighbour(const IpHeader &packet, NeighbourMessage *out) {
  const Part &message = packet.payload;
  if (packet.hops != neighbour_hops || message.count < options_offset || message.bytes[1] != 0)
    return Defect::malformed;
  if (icmpv6_checksum(packet) != 0) return Defect::bad_checksum;
  out->is_solicitation = message.bytes[0] == static_cast<uint8_t>(Icmpv6::neighbour_solicitation);
  std::memcpy(out->target.bytes.data(), message.bytes + target_offset, IpAddress::size);
  if (!is_host(out->target) || out->target.is_v4()) return Defect::malformed;
  const Part options{message.bytes + options_offset, message.count - options_offset};
  const Defect defect =
      read_options(options, out->is_solicitation ? source_mac_option : target_mac_option, out);
  // A host that probes whether an address is free has none itself, and nobody shall learn of it.
  const bool probes = packet.source == unspecified;
  if (defect == Defect::none && (probes ? out->has_mac : !is_host(packet.source)))
    return Defect::malformed;
  return defect;
}

void write_neighbour(uint8_t *to, const Mac &destination_mac, const IpAddress &source,
                     const IpAddress &destination, const NeighbourMessage &message) {
  uint8_t *body = to + write_ip(to, destination_mac, message.mac, source, destination,
                                Protocol::icmpv6, neighbour_hops, neighbour_bytes);
  std::memset(body, 0, neighbour_bytes);
  body[0] = static_cast<uint8_t>(message.is_solicitation ? Icmpv6::neighbour_solicitation
                                                         : Icmpv6::neighbour_advertisement);
  // To all nodes it answers no solicitation that had a sender.
  if (!message.is_solicitation)
    body[4] = destination == all_nodes ? override_flag : solicited_flag | override_flag;
  std::memcpy(body + target_offset, message.target.bytes.data(), IpAddress::size);
  body[options_offset] = message.is_solicitation ? source_mac_option : target_mac_option;
  body[options_offset + 1] = mac_option_bytes / 8;
  std::memcpy(body + options_offset + 2, message.mac.data(), message.mac.size());
  const auto protocol = static_cast<uint8_t>(Protocol::icmpv6);
  store16(body + 2, icmpv6_checksum({source, destination, protocol, neighbour_hops,
                                     Part{body, neighbour_bytes}}));
}

IpAddress solicited_node(const IpAddress &address) {
  IpAddress group{{0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF}};
  std::memcpy(group.bytes.data() + 13, address.bytes.data() + 13, 3);
  return group;
}

Mac group_mac(const IpAddress &group) {
  Mac mac{0x33, 0x33};
  std::memcpy(mac.data() + 2, group.bytes.data() + 12, 4);
  return mac;
}

}  // namespace accel_rl::replay
