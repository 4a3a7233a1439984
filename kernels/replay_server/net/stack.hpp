// As much of a host as datagrams need, at one port of a network: one IPv4 or IPv6 address, which
// answers ARP or neighbour solicitations, and ping, and one UDP port.

#ifndef ACCEL_RL_REPLAY_NET_STACK_HPP
#define ACCEL_RL_REPLAY_NET_STACK_HPP

#include <functional>
#include <vector>

#include "../protocol/frame.hpp"
#include "headers.hpp"
#include "icmpv6.hpp"
#include "neighbours.hpp"
#include "nic.hpp"

namespace accel_rl::replay {

struct NetCounters {
  uint64_t received = 0, sent = 0;  // packets, whatever they are
  uint64_t datagrams = 0;           // to the UDP port
  uint64_t arp = 0;                 // answered
  uint64_t solicitations = 0;       // of neighbours over IPv6, answered
  uint64_t echoes = 0;              // answered
  uint64_t forwarded = 0;           // to the other port
  uint64_t not_ours = 0;            // for another address, port or protocol, and dropped
  uint64_t malformed = 0, bad_checksum = 0, fragments = 0;  // dropped
  uint64_t unresolved = 0;  // not sent: the neighbour has to be asked for its address first
  uint64_t no_room = 0;     // not sent, or not forwarded
};
constexpr size_t net_counters_count = 13;
constexpr const char *net_counter_names[net_counters_count] = {
    "received", "sent",      "datagrams",    "arp",       "solicitations", "echoes", "forwarded",
    "not_ours", "malformed", "bad_checksum", "fragments", "unresolved",    "no_room"};
static_assert(sizeof(NetCounters) == net_counters_count * sizeof(uint64_t), "listed as they lie");

class Stack {
 public:
  // A datagram that came. The bytes are good until the next poll().
  using Take = std::function<void(const UdpEndpoint &from, const Part &datagram)>;
  // A packet that is for somebody else; whether it was passed on.
  using Foreign = std::function<bool(const Part &packet)>;

  Stack(Nic *nic, const UdpEndpoint &own)
      : nic_(nic),
        own_(own),
        own_group_(solicited_node(own.address)),
        neighbours_(most_neighbours) {}

  // Takes a burst of packets; whether there were any. No `foreign`: what is not ours is dropped.
  bool poll(uint64_t now_ms, const Take &take, const Foreign &foreign);
  // A datagram of header_bytes bytes and what the parts hold, at most datagram_bytes() together.
  // False if it was not sent: the neighbour was asked for its address, or there is no room.
  bool send(const UdpEndpoint &to, const uint8_t *header, const Part *parts, size_t count,
            uint64_t now_ms);
  // Whether the Ethernet address of a neighbour is known; otherwise asks, if it is time to.
  bool resolve(const IpAddress &address, uint64_t now_ms);

  size_t datagram_bytes() const { return nic_->mtu() - ip_bytes(own_.address) - udp_bytes; }
  const UdpEndpoint &own() const { return own_; }
  const NetCounters &counters() const { return counters_; }

  static constexpr size_t most_neighbours = 1024, burst = 32;

 private:
  void handle(const Part &packet, uint64_t now_ms, const Take &take, const Foreign &foreign);
  void arp(const ArpMessage &message, uint64_t now_ms);
  bool solicitation(const EthernetHeader &ethernet, uint64_t now_ms, bool forwards);
  void neighbour(const EthernetHeader &ethernet, const IpHeader &packet,
                 const NeighbourMessage &message, uint64_t now_ms);
  void ip(const EthernetHeader &ethernet, const IpHeader &packet, uint64_t now_ms,
          const Take &take);
  void echo(const EthernetHeader &ethernet, const IpHeader &packet);
  void count(Defect defect);
  bool put(const Part *parts, size_t parts_count);

  Nic *nic_;
  UdpEndpoint own_;
  IpAddress own_group_;  // where neighbours ask for an IPv6 address
  Neighbours neighbours_;
  NetCounters counters_;
  std::vector<Part> parts_;
};

}  // namespace accel_rl::replay

#endif
