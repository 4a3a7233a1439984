// The stack's part in finding Ethernet addresses: ARP, and IPv6 neighbour discovery.

#include "stack.hpp"

namespace accel_rl::replay {

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

bool Stack::resolve(const IpAddress &address, uint64_t now_ms) {
  if (neighbours_.find(address)) return true;
  if (!neighbours_.may_request(address, now_ms)) return false;
  if (!address.is_v4()) {
    uint8_t solicitation[neighbour_packet_bytes];
    const IpAddress group = solicited_node(address);
    write_neighbour(solicitation, group_mac(group), own_.address, group,
                    {true, address, true, nic_->mac()});
    const Part whole{solicitation, sizeof solicitation};
    put(&whole, 1);
    return false;
  }
  uint8_t request[least_packet_bytes] = {};
  write_ethernet(request, broadcast_mac, nic_->mac(), EtherType::arp);
  write_arp(request + ethernet_bytes, {true, nic_->mac(), own_.address, address}, Mac{});
  const Part whole{request, sizeof request};
  put(&whole, 1);
  return false;
}

// A message to a multicast group of IPv6. False if it is for others: also those that share the last
// three bytes of this address, and so the group.
bool Stack::solicitation(const EthernetHeader &ethernet, uint64_t now_ms, bool forwards) {
  if (own_.address.is_v4() || ethernet.destination != group_mac(own_group_)) return false;
  IpHeader packet;
  NeighbourMessage message;
  Defect defect = read_ipv6(ethernet.payload, &packet);
  if (defect == Defect::none) {
    if (packet.destination != own_group_ || !is_neighbour_message(packet)) return false;
    defect = read_neighbour(packet, &message);
  }
  if (defect != Defect::none) {
    if (!forwards) count(defect);
    return !forwards;
  }
  if (!message.is_solicitation || message.target != own_.address) return false;
  neighbour(ethernet, packet, message, now_ms);
  return true;
}

// A message to this host, or a solicitation for its address.
void Stack::neighbour(const EthernetHeader &ethernet, const IpHeader &packet,
                      const NeighbourMessage &message, uint64_t now_ms) {
  const Mac &mac = message.has_mac ? message.mac : ethernet.source;
  const bool is_own = message.target == own_.address;
  if (is_group(mac) || packet.source == own_.address || (is_own && !message.is_solicitation))
    return count(Defect::malformed);
  if (!message.is_solicitation) return neighbours_.learn(message.target, mac, now_ms);
  if (!is_own) {
    ++counters_.not_ours;
    return;
  }
  // A sender without an address probes whether this one is free; all hosts are told that it is not.
  const bool probes = !is_host(packet.source);
  if (!probes) neighbours_.learn(packet.source, mac, now_ms);
  uint8_t reply[neighbour_packet_bytes];
  write_neighbour(reply, probes ? group_mac(all_nodes) : mac, own_.address,
                  probes ? all_nodes : packet.source, {false, own_.address, true, nic_->mac()});
  const Part whole{reply, sizeof reply};
  if (put(&whole, 1)) ++counters_.solicitations;
}

}  // namespace accel_rl::replay
