// Ethernet addresses of neighbours by their IP addresses, as ARP, neighbour discovery and the
// neighbours' own packets told. Bounded: the one that was heard longest ago makes room.

#ifndef ACCEL_RL_REPLAY_NET_NEIGHBOURS_HPP
#define ACCEL_RL_REPLAY_NET_NEIGHBOURS_HPP

#include <unordered_map>

#include "ip_address.hpp"
#include "nic.hpp"

namespace accel_rl::replay {

class Neighbours {
 public:
  explicit Neighbours(size_t most) : most_(most) {}

  void learn(const IpAddress &address, const Mac &mac, uint64_t now_ms);
  const Mac *find(const IpAddress &address) const;
  // Whether to ask for an address now: not again within `request_ms`.
  bool may_request(const IpAddress &address, uint64_t now_ms);
  size_t size() const { return entries_.size(); }

  static constexpr uint64_t request_ms = 20;

 private:
  struct Entry {
    Mac mac;
    bool known;
    uint64_t heard_ms;  // or asked for
  };

  Entry &entry(const IpAddress &address);

  size_t most_;
  std::unordered_map<IpAddress, Entry> entries_;
};

}  // namespace accel_rl::replay

#endif
