#include "nic_link.hpp"

#include <sched.h>

#include "../core/clock.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint64_t look_us = 50000;  // between questions whether the caller still waits
constexpr uint64_t reach_us = 1000;  // and, before the first request, whether somebody is there

}  // namespace

NicLink::NicLink(std::unique_ptr<Nic> nic, const UdpEndpoint &own, const UdpEndpoint &server,
                 uint64_t greeting)
    : nic_(std::move(nic)),
      stack_(nic_.get(), own),
      server_(server),
      caller_(greeting, Address::of(&server.address, sizeof server.address), this),
      take_([this](const UdpEndpoint &from, const Part &datagram) {
        if (from.address == server_.address && from.port == server_.port)
          caller_.receive(datagram.bytes, datagram.count, now_us_);
      }) {}

bool NicLink::poll() {
  now_us_ = clock_us();
  return stack_.poll(now_us_ / 1000, take_, {});
}

// There was nothing to do. Asks the caller, and whether the line is up, a few times a second.
Fault NicLink::pause(uint64_t end_us, const KeepWaiting &keep_waiting) {
  if (end_us > 0 && now_us_ >= end_us) return Fault::timed_out;
  if (now_us_ - looked_us_ >= look_us) {
    looked_us_ = now_us_;
    if (!nic_->link()) return Fault::closed;
    if (keep_waiting && !keep_waiting()) return Fault::interrupted;
  }
  sched_yield();
  return Fault::none;
}

Fault NicLink::await_server(uint64_t timeout_us, const KeepWaiting &keep_waiting) {
  poll();
  const uint64_t end_us = now_us_ + timeout_us;
  for (uint64_t asked_us = now_us_;;) {
    if (nic_->link()) {
      if (stack_.resolve(server_.address, now_us_ / 1000)) return Fault::none;
      nic_->flush();
    }
    if (timeout_us > 0 && now_us_ >= end_us) return Fault::timed_out;
    if (now_us_ - asked_us >= look_us) {
      asked_us = now_us_;
      if (keep_waiting && !keep_waiting()) return Fault::interrupted;
    }
    const timespec wait = {0, static_cast<long>(reach_us * 1000)};
    nanosleep(&wait, nullptr);
    poll();
  }
}

Fault NicLink::exchange(const Part *parts, size_t count, uint8_t *into, size_t room,
                        uint64_t timeout_us, const KeepWaiting &keep_waiting) {
  now_us_ = looked_us_ = clock_us();
  const uint64_t end_us = timeout_us > 0 ? now_us_ + timeout_us : 0;
  if (!caller_.begin(parts, count, into, room, now_us_)) return Fault::malformed;
  caller_.pump(now_us_);
  while (caller_.busy()) {
    const bool came = poll();
    if (came || now_us_ >= caller_.next_us()) caller_.pump(now_us_);
    if (came || !caller_.busy()) continue;
    const Fault fault = pause(end_us, keep_waiting);
    if (fault != Fault::none) caller_.abandon(fault);
  }
  return caller_.fault();
}

bool NicLink::send(const Address &, const uint8_t *header, const Part *parts, size_t count) {
  return stack_.send(server_, header, parts, count, now_us_ / 1000);
}

uint32_t NicLink::slice_bytes(const Address &) const {
  return largest_slice(stack_.datagram_bytes());
}

}  // namespace accel_rl::replay
