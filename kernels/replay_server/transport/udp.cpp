#include "udp.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "endpoint.hpp"

namespace accel_rl::replay {

namespace {

constexpr int most_batches = 4;  // before others have their turn

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
  return true;
}

bool Udp::poll(uint64_t now_ms) {
  for (int batch = 0; batch < most_batches; ++batch) {
    const int count = inbox_.take(file_);
    for (int k = 0; k < count; ++k)
      datagrams_.receive(inbox_.from(k), inbox_.bytes(k), inbox_.count(k), now_ms);
    wire_.push();
    if (count < UdpInbox::most) return false;  // of what comes from now on the kernel tells
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
