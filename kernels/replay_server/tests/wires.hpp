// Ports of a network in memory, two at the ends of a line, for tests of what sends packets.

#ifndef ACCEL_RL_REPLAY_TESTS_WIRES_HPP
#define ACCEL_RL_REPLAY_TESTS_WIRES_HPP

#include <algorithm>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "check.h"
#include "nic.hpp"

namespace wires {

using namespace accel_rl::replay;
using Packet = std::vector<uint8_t>;

// One direction of a line.
struct Line {
  std::mutex mutex;
  std::deque<Packet> packets;
  size_t most = 256;   // what is more is lost
  size_t largest = 0;  // of all packets, in bytes
  bool cut = false;
};

class End : public Nic {
 public:
  End(Line *in, Line *out, uint8_t last, size_t mtu = 1500)
      : in_(in), out_(out), mac_{2, 0, 0, 0, 0, last}, mtu_(mtu) {}

  size_t receive(Part *packets, size_t most) override {
    const std::lock_guard<std::mutex> lock(in_->mutex);
    held_.clear();
    while (held_.size() < std::min<size_t>(most, 32) && !in_->packets.empty()) {
      held_.push_back(std::move(in_->packets.front()));
      in_->packets.pop_front();
    }
    for (size_t k = 0; k < held_.size(); ++k) {
      held_[k].shrink_to_fit();  // so that a sanitizer sees what is read behind it
      packets[k] = {held_[k].data(), held_[k].size()};
    }
    return held_.size();
  }
  bool send(const Part *parts, size_t count) override {
    Packet whole;
    for (size_t k = 0; k < count; ++k)
      whole.insert(whole.end(), parts[k].bytes, parts[k].bytes + parts[k].count);
    const std::lock_guard<std::mutex> lock(out_->mutex);
    out_->largest = std::max(out_->largest, whole.size());
    if (whole.size() > mtu() + 14 || out_->packets.size() >= out_->most) return false;
    out_->packets.push_back(std::move(whole));
    return true;
  }
  void flush() override {}
  const Mac &mac() const override { return mac_; }
  size_t mtu() const override { return mtu_; }
  bool link() override {
    const std::lock_guard<std::mutex> lock(in_->mutex);
    return !in_->cut;
  }

 private:
  Line *in_, *out_;
  Mac mac_;
  size_t mtu_;
  std::vector<Packet> held_;
};

inline Packet packet(const std::string &hex) {
  Packet bytes;
  for (size_t k = 0; k < hex.size(); k += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(k, 2), nullptr, 16)));
  return bytes;
}

}  // namespace wires

#endif
