#include "stack.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint8_t icmp_echo = 8, icmp_echo_reply = 0;

bool is_group(const Mac &mac) { return mac[0] & 1; }

// Whether an address may be that of one other host: no broadcast, multicast, loopback or 0.0.0.0.
bool is_host(uint32_t address) {
  const uint32_t first = address >> 24;
  return first != 0 && first != 127 && first < 224;
}

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
  if (ethernet.type == static_cast<uint16_t>(EtherType::arp) &&
      (is_ours || is_group(ethernet.destination))) {
    ArpMessage message;
    const Defect defect = read_arp(ethernet.payload, &message);
    if (defect == Defect::none && message.target == own_.address) return arp(message, now_ms);
    if (defect != Defect::none && !foreign) return count(defect);
  } else if (ethernet.type == static_cast<uint16_t>(EtherType::ipv4) && is_ours) {
    return ipv4(ethernet, now_ms, take);
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

void Stack::arp(const ArpMessage &message, uint64_t now_ms) {
  if (!is_host(message.sender) || message.sender == own_.address || is_group(message.sender_mac))
    return count(Defect::malformed);
  neighbours_.learn(message.sender, message.sender_mac, now_ms);
  if (!message.is_request) return;
  uint8_t reply[least_packet_bytes] = {};
  write_ethernet(reply, message.sender_mac, nic_->mac(), EtherType::arp);
  write_arp(reply + ethernet_bytes, {false, nic_->mac(), own_.address, message.sender},
            message.sender_mac);
  const Part whole{reply, sizeof reply};
  if (put(&whole, 1)) ++counters_.arp;
}

bool Stack::resolve(uint32_t address, uint64_t now_ms) {
  if (neighbours_.find(address)) return true;
  if (!neighbours_.may_request(address, now_ms)) return false;
  uint8_t request[least_packet_bytes] = {};
  write_ethernet(request, broadcast_mac, nic_->mac(), EtherType::arp);
  write_arp(request + ethernet_bytes, {true, nic_->mac(), own_.address, address}, Mac{});
  const Part whole{request, sizeof request};
  put(&whole, 1);
  return false;
}

void Stack::ipv4(const EthernetHeader &ethernet, uint64_t now_ms, const Take &take) {
  Ipv4Header packet;
  if (const Defect defect = read_ipv4(ethernet.payload, &packet); defect != Defect::none)
    return count(defect);
  if (packet.destination != own_.address) {
    ++counters_.not_ours;
    return;
  }
  // An answer must not go to a group, nor to this host itself.
  if (!is_host(packet.source) || packet.source == own_.address || is_group(ethernet.source))
    return count(Defect::malformed);
  if (packet.protocol == static_cast<uint8_t>(Protocol::icmp)) return echo(ethernet, packet);
  UdpHeader datagram;
  if (packet.protocol != static_cast<uint8_t>(Protocol::udp)) {
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

void Stack::echo(const EthernetHeader &ethernet, const Ipv4Header &packet) {
  const Part &message = packet.payload;
  if (message.count < icmp_bytes) return count(Defect::malformed);
  if (internet_checksum(message.bytes, message.count) != 0) return count(Defect::bad_checksum);
  if (message.bytes[0] != icmp_echo || message.bytes[1] != 0) {
    ++counters_.not_ours;
    return;
  }
  uint8_t head[ethernet_bytes + ipv4_bytes + icmp_bytes];
  uint8_t *icmp = head + ethernet_bytes + ipv4_bytes;
  write_ethernet(head, ethernet.source, nic_->mac(), EtherType::ipv4);
  write_ipv4(head + ethernet_bytes, own_.address, packet.source, Protocol::icmp, message.count);
  std::memcpy(icmp, message.bytes, icmp_bytes);
  icmp[0] = icmp_echo_reply;
  // Only the type has changed, so the checksum does by as much (RFC 1624).
  uint32_t sum = (0xFFFFu - load16(message.bytes + 2)) + (0xFFFFu - (icmp_echo << 8));
  sum = (sum & 0xFFFF) + (sum >> 16);
  store16(icmp + 2, static_cast<uint16_t>(~sum));
  const Part parts[] = {{head, sizeof head},
                        {message.bytes + icmp_bytes, message.count - icmp_bytes}};
  if (put(parts, 2)) ++counters_.echoes;
}

bool Stack::send(const Udp4Endpoint &to, const uint8_t *header, const Part *parts, size_t count,
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
  uint8_t head[ethernet_bytes + ipv4_bytes + udp_bytes + header_bytes];
  write_ethernet(head, *neighbours_.find(to.address), nic_->mac(), EtherType::ipv4);
  write_ipv4(head + ethernet_bytes, own_.address, to.address, Protocol::udp, udp_bytes + bytes);
  write_udp(head + ethernet_bytes + ipv4_bytes, own_.port, to.port, bytes);
  std::memcpy(head + sizeof head - header_bytes, header, header_bytes);
  parts_.clear();
  parts_.push_back({head, sizeof head});
  parts_.insert(parts_.end(), parts, parts + count);
  return put(parts_.data(), parts_.size());
}

}  // namespace accel_rl::replay
