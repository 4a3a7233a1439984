#include "neighbours.hpp"

#include <algorithm>

namespace accel_rl::replay {

Neighbours::Entry &Neighbours::entry(const IpAddress &address) {
  const auto found = entries_.find(address);
  if (found != entries_.end()) return found->second;
  if (entries_.size() >= most_)
    entries_.erase(std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto &a, const auto &b) { return a.second.heard_ms < b.second.heard_ms; }));
  return entries_.emplace(address, Entry{{}, false, 0}).first->second;
}

void Neighbours::learn(const IpAddress &address, const Mac &mac, uint64_t now_ms) {
  entry(address) = {mac, true, now_ms};
}

const Mac *Neighbours::find(const IpAddress &address) const {
  const auto found = entries_.find(address);
  return found != entries_.end() && found->second.known ? &found->second.mac : nullptr;
}

bool Neighbours::may_request(const IpAddress &address, uint64_t now_ms) {
  const auto found = entries_.find(address);
  if (found != entries_.end() && now_ms - found->second.heard_ms < request_ms) return false;
  entry(address).heard_ms = now_ms;
  return true;
}

}  // namespace accel_rl::replay
