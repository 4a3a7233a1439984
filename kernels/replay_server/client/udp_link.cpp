#include "udp_link.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "../core/clock.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint64_t slice_us = 100000;  // between two questions whether to go on

}  // namespace

std::unique_ptr<UdpLink> UdpLink::open(const std::string &host, uint16_t port, bool busy,
                                       std::string *why) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    *why = host + ": " + gai_strerror(error);
    return nullptr;
  }
  std::unique_ptr<UdpLink> made;
  for (const addrinfo *each = found; each && !made; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    const int file = socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint64_t greeting = 0;
    if (file >= 0 && connect(file, each->ai_addr, each->ai_addrlen) == 0 &&
        getrandom(&greeting, sizeof greeting, 0) == ssize_t{sizeof greeting}) {
      made.reset(new UdpLink(file, std::max<uint64_t>(greeting, 1),
                             Address::of(each->ai_addr, each->ai_addrlen), busy));
      continue;
    }
    *why = host + " port " + std::to_string(port) + ": " + std::strerror(errno);
    if (file >= 0) close(file);
  }
  freeaddrinfo(found);
  return made;
}

UdpLink::UdpLink(int file, uint64_t greeting, const Address &server, bool busy)
    : file_(file), busy_(busy), caller_(greeting, server, &wire_) {
  wire_.open(file, true);
  UdpInbox::open(file);
}

UdpLink::~UdpLink() { close(file_); }

// How many datagrams there are, once there are some or it is so late; -1: errno says why.
int UdpLink::take(uint64_t until_us, uint64_t *now_us) {
  const uint64_t left = until_us > *now_us ? until_us - *now_us : 0;
  if (!busy_) {
    pollfd wanted = {file_, POLLIN, 0};
    const timespec most = {static_cast<time_t>(left / 1000000),
                           static_cast<long>(left % 1000000 * 1000)};
    const bool came = ppoll(&wanted, 1, &most, nullptr) > 0;
    *now_us = clock_us();
    return came ? inbox_.take(file_) : 0;
  }
  for (;;) {
    const int taken = inbox_.take(file_);
    *now_us = clock_us();
    if (taken >= 0 || *now_us >= until_us || (errno != EAGAIN && errno != EINTR)) return taken;
  }
}

Fault UdpLink::exchange(const Part *parts, size_t count, uint8_t *into, size_t room,
                        uint64_t timeout_us, const KeepWaiting &keep_waiting) {
  uint64_t now = clock_us();
  const uint64_t end = timeout_us > 0 ? now + timeout_us : UINT64_MAX;
  uint64_t asked = now;
  if (!caller_.begin(parts, count, into, room, now)) return Fault::malformed;
  for (;;) {
    caller_.pump(now);
    wire_.push();
    if (wire_.refused()) caller_.abandon(Fault::closed);  // nobody is there
    if (!caller_.busy()) return caller_.fault();
    const uint64_t until = std::min({caller_.next_us(), asked + slice_us, end});
    const int taken = take(until, &now);
    if (taken < 0 && errno == ECONNREFUSED) caller_.abandon(Fault::closed);
    for (int k = 0; k < taken; ++k) caller_.receive(inbox_.bytes(k), inbox_.count(k), now);
    if (now >= end && caller_.busy()) caller_.abandon(Fault::timed_out);
    if (now >= asked + slice_us && caller_.busy()) {
      asked = now;
      if (keep_waiting && !keep_waiting()) caller_.abandon(Fault::interrupted);
    }
  }
}

}  // namespace accel_rl::replay
