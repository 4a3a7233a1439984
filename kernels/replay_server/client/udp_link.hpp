// A client's connection to a server by datagrams of UDP.

#ifndef ACCEL_RL_REPLAY_CLIENT_UDP_LINK_HPP
#define ACCEL_RL_REPLAY_CLIENT_UDP_LINK_HPP

#include <memory>
#include <string>

#include "../datagram/caller.hpp"
#include "../transport/udp_wire.hpp"
#include "link.hpp"

namespace accel_rl::replay {

class UdpLink : public Link {
 public:
  // To the first of the host's addresses that there is a route to; nothing is sent yet. Null with
  // `why`. `busy`: looks for a reply again and again, and never sleeps.
  static std::unique_ptr<UdpLink> open(const std::string &host, uint16_t port, bool busy,
                                       std::string *why);
  ~UdpLink() override;

  Fault exchange(const Part *parts, size_t count, uint8_t *into, size_t room, uint64_t timeout_us,
                 const KeepWaiting &keep_waiting) override;
  const uint8_t *reply() const override { return caller_.reply(); }
  size_t reply_bytes() const override { return caller_.reply_bytes(); }
  void set_frame_bytes(uint32_t bytes) override { caller_.set_frame_bytes(bytes); }
  const CallerCounts &counts() const { return caller_.counts(); }

 private:
  UdpLink(int file, uint64_t greeting, const Address &server, bool busy);
  int take(uint64_t until_us, uint64_t *now_us);

  int file_;
  bool busy_;
  UdpWire wire_;
  UdpInbox inbox_;
  Caller caller_;
};

}  // namespace accel_rl::replay

#endif
