// Which Ethernet address a neighbour's IPv4 address has: what ARP and the neighbours' own packets
// told. Bounded: the one that was heard longest ago makes room.

#ifndef ACCEL_RL_REPLAY_NET_NEIGHBOURS_HPP
#define ACCEL_RL_REPLAY_NET_NEIGHBOURS_HPP

#include <unordered_map>

#include "nic.hpp"

namespace accel_rl::replay {

class Neighbours {
 public:
  explicit Neighbours(size_t most) : most_(most) {}

  void learn(uint32_t address, const Mac &mac, uint64_t now_ms);
  const Mac *find(uint32_t address) const;
  // Whether ARP shall ask for an address now: not again within `request_ms`.
  bool may_request(uint32_t address, uint64_t now_ms);
  size_t size() const { return entries_.size(); }

  static constexpr uint64_t request_ms = 20;

 private:
  struct Entry {
    Mac mac;
    bool known;
    uint64_t heard_ms;  // or asked for
  };

  Entry &entry(uint32_t address);

  size_t most_;
  std::unordered_map<uint32_t, Entry> entries_;
};

}  // namespace accel_rl::replay

#endif
