#include "udp.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "../core/clock.hpp"
#include "endpoint.hpp"

namespace accel_rl::replay {

namespace {

constexpr int most_batches = 4;  // before others have their turn
constexpr uint64_t turn_us = 1000;

}  // namespace

bool Udp::open(const std::string &host, uint16_t port, bool secret, std::string *why) {
  Endpoint wanted, bound;
  if (!find_endpoint(host, port, secret, &wanted, why)) return false;
  file_ = socket(wanted.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bound.length = sizeof bound.address;
  if (file_ < 0 || bind(file_, wanted.general(), wanted.length) != 0 ||
      getsockname(file_, reinterpret_cast<sockaddr *>(&bound.address), &bound.length) != 0) {
    *why =
        "cannot receive on " + host + " port " + std::to_string(port) + ": " + std::strerror(errno);
    return false;
  }
  port_ = port_of(bound.general());
  wire_.open(file_, false);
  UdpInbox::open(file_);
  return true;
}

bool Udp::poll(uint64_t now_ms) {
  const uint64_t began = clock_us();
  for (int batch = 0; batch < most_batches; ++batch) {
    if (next_ == count_) next_ = 0, count_ = std::max(inbox_.take(file_), 0);
    while (next_ < count_ && clock_us() - began < turn_us) {
      datagrams_.receive(inbox_.from(next_), inbox_.bytes(next_), inbox_.count(next_), now_ms);
      ++next_;
    }
    wire_.push();
    if (next_ < count_) return true;
    if (!inbox_.full()) return false;  // of what comes from now on the kernel tells
  }
  return true;
}

void Udp::deliver(Peer &peer, FrameBuffer &frame) {
  datagrams_.deliver(peer, frame);
  wire_.push();
}

void Udp::close_idle(uint64_t now_ms) { datagrams_.close_idle(now_ms); }

void Udp::close(uint64_t now_ms) {
  datagrams_.close(now_ms);
  release();
}

// From now on the kernel says that nobody is here.
void Udp::release() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

}  // namespace accel_rl::replay
