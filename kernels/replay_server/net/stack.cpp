#include "stack.hpp"

namespace accel_rl::replay {

namespace {

constexpr size_t icmp_bytes = 8;
constexpr uint8_t icmp_echo_request = 8, icmp_echo_reply = 0;

}  // namespace

bool Stack::poll(uint64_t now_ms, const Take &take, const Foreign &foreign) {
  Part packets[burst];
  const size_t count = nic_->receive(packets, burst);
  for (size_t k = 0; k < count; ++k) handle(packets[k], now_ms, take, foreign);
  counters_.received += count;
  return count > 0;
}

void Stack::handle(const Part &packet, uint64_t now_ms, const Take &take, const Foreign &foreign) {
  EthernetHeader ethernet;
  if (const Defect defect = read_ethernet(packet, &ethernet); defect != Defect::none)
    return count(defect);
  const bool is_ours = ethernet.destination == nic_->mac();
  const bool for_group = is_group(ethernet.destination);
  const auto type = static_cast<EtherType>(ethernet.type);
  if (type == EtherType::arp && (is_ours || for_group)) {
    ArpMessage message;
    const Defect defect = read_arp(ethernet.payload, &message);
    if (defect == Defect::none && message.target == own_.address) return arp(message, now_ms);
    if (defect != Defect::none && !foreign) return count(defect);
  } else if ((type == EtherType::ipv4 || type == EtherType::ipv6) && is_ours) {
    IpHeader header;
    const Defect defect =
        (type == EtherType::ipv4 ? read_ipv4 : read_ipv6)(ethernet.payload, &header);
    return defect == Defect::none ? ip(ethernet, header, now_ms, take) : count(defect);
  } else if (type == EtherType::ipv6 && for_group &&
             solicitation(ethernet, now_ms, foreign != nullptr)) {
    return;
  }
  // What has this port's own address on Ethernet, nobody else would take.
  if (foreign && !is_ours) {
    ++(foreign(packet) ? counters_.forwarded : counters_.no_room);
  } else {
    ++counters_.not_ours;
  }
}

void Stack::count(Defect defect) {
  ++(defect == Defect::fragment       ? counters_.fragments
     : defect == Defect::bad_checksum ? counters_.bad_checksum
                                      : counters_.malformed);
}

bool Stack::put(const Part *parts, size_t parts_count) {
  const bool done = nic_->send(parts, parts_count);
  ++(done ? counters_.sent : counters_.no_room);
  return done;
}

void Stack::ip(const EthernetHeader &ethernet, const IpHeader &packet, uint64_t now_ms,
               const Take &take) {
  if (packet.destination != own_.address) {
    ++counters_.not_ours;
    return;
  }
  // An answer must not go to a group, nor to this host itself.
  if (!is_host(packet.source) || packet.source == own_.address || is_group(ethernet.source))
    return count(Defect::malformed);
  const auto protocol = static_cast<Protocol>(packet.protocol);
  if (protocol == (own_.address.is_v4() ? Protocol::icmp : Protocol::icmpv6)) {
    if (!is_neighbour_message(packet)) return echo(ethernet, packet);
    NeighbourMessage message;
    const Defect defect = read_neighbour(packet, &message);
    return defect == Defect::none ? neighbour(ethernet, packet, message, now_ms) : count(defect);
  }
  UdpHeader datagram;
  if (protocol != Protocol::udp) {
    ++counters_.not_ours;
  } else if (const Defect defect = read_udp(packet.payload, &datagram); defect != Defect::none) {
    count(defect);
  } else if (datagram.destination != own_.port) {
    ++counters_.not_ours;
  } else {
    // The way back is the way it came, also where a router stands between.
    neighbours_.learn(packet.source, ethernet.source, now_ms);
    ++counters_.datagrams;
    take({packet.source, datagram.source}, datagram.payload);
  }
}

void Stack::echo(const EthernetHeader &ethernet, const IpHeader &packet) {
  const bool is_v4 = own_.address.is_v4();
  const uint8_t request = is_v4 ? icmp_echo_request : static_cast<uint8_t>(Icmpv6::echo_request);
  const Part &message = packet.payload;
  if (message.count < icmp_bytes) return count(Defect::malformed);
  if ((is_v4 ? internet_checksum(message.bytes, message.count) : icmpv6_checksum(packet)) != 0)
    return count(Defect::bad_checksum);
  if (message.bytes[0] != request || message.bytes[1] != 0) {
    ++counters_.not_ours;
    return;
  }
  uint8_t head[ethernet_bytes + ipv6_bytes + icmp_bytes];
  uint8_t *icmp =
      head + write_ip(head, ethernet.source, nic_->mac(), own_.address, packet.source,
                      static_cast<Protocol>(packet.protocol), usual_hops, message.count);
  std::memcpy(icmp, message.bytes, icmp_bytes);
  icmp[0] = is_v4 ? icmp_echo_reply : static_cast<uint8_t>(Icmpv6::echo_reply);
  // Only the type has changed, so the checksum does by as much (RFC 1624).
  uint32_t sum =
      (0xFFFFu - load16(message.bytes + 2)) + (0xFFFFu - (request << 8)) + (uint32_t{icmp[0]} << 8);
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  store16(icmp + 2, static_cast<uint16_t>(~sum));
  const Part parts[] = {{head, static_cast<size_t>(icmp + icmp_bytes - head)},
                        {message.bytes + icmp_bytes, message.count - icmp_bytes}};
  if (put(parts, 2)) ++counters_.echoes;
}

bool Stack::send(const UdpEndpoint &to, const uint8_t *header, const Part *parts, size_t count,
                 uint64_t now_ms) {
  size_t bytes = header_bytes;
  for (size_t k = 0; k < count; ++k) bytes += parts[k].count;
  if (bytes > datagram_bytes()) {
    ++counters_.no_room;
    return false;
  }
  if (!resolve(to.address, now_ms)) {
    ++counters_.unresolved;
    return false;
  }
  uint8_t head[ethernet_bytes + ipv6_bytes + udp_bytes + header_bytes];
  uint8_t *udp = head + write_ip(head, *neighbours_.find(to.address), nic_->mac(), own_.address,
                                 to.address, Protocol::udp, usual_hops, udp_bytes + bytes);
  write_udp(udp, own_.port, to.port, bytes);
  std::memcpy(udp + udp_bytes, header, header_bytes);
  parts_.clear();
  parts_.push_back({head, static_cast<size_t>(udp + udp_bytes + header_bytes - head)});
  parts_.insert(parts_.end(), parts, parts + count);
  if (!own_.address.is_v4()) {
    Checksum sum;
    sum.add_pseudo_header(own_.address, to.address, Protocol::udp, udp_bytes + bytes);
    sum.add(udp, udp_bytes + header_bytes);
    for (size_t k = 0; k < count; ++k) sum.add(parts[k].bytes, parts[k].count);
    const uint16_t checksum = sum.value();
    store16(udp + 6, checksum != 0 ? checksum : 0xFFFF);  // 0 says that there is none
  }
  return put(parts_.data(), parts_.size());
}

}  // namespace accel_rl::replay
