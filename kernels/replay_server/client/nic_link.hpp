// A link over a port of a network without a kernel between, as a memif socket of DPDK's: looks for
// a reply until it is there, and leaves the core to others meanwhile.

#ifndef ACCEL_RL_REPLAY_CLIENT_NIC_LINK_HPP
#define ACCEL_RL_REPLAY_CLIENT_NIC_LINK_HPP

#include <memory>

#include "../datagram/caller.hpp"
#include "../net/stack.hpp"
#include "link.hpp"

namespace accel_rl::replay {

class NicLink : public Link, private Wire {
 public:
  // `greeting`: random bits, not 0.
  NicLink(std::unique_ptr<Nic> nic, const UdpEndpoint &own, const UdpEndpoint &server,
          uint64_t greeting);

  // Wait until the server's port says its Ethernet address; call before anything else.
  Fault await_server(uint64_t timeout_us, const KeepWaiting &keep_waiting);
  Fault exchange(const Part *parts, size_t count, uint8_t *into, size_t room, uint64_t timeout_us,
                 const KeepWaiting &keep_waiting) override;
  const uint8_t *reply() const override { return caller_.reply(); }
  size_t reply_bytes() const override { return caller_.reply_bytes(); }
  void set_frame_bytes(uint32_t bytes) override { caller_.set_frame_bytes(bytes); }

 private:
  bool poll();
  Fault pause(uint64_t end_us, const KeepWaiting &keep_waiting);

  bool send(const Address &to, const uint8_t *header, const Part *parts, size_t count) override;
  void flush() override { nic_->flush(); }
  uint32_t slice_bytes(const Address &to) const override;

  std::unique_ptr<Nic> nic_;
  Stack stack_;
  UdpEndpoint server_;
  Caller caller_;
  Stack::Take take_;
  uint64_t now_us_ = 0, looked_us_ = 0;
};

// At the default addresses of docs/replay-dpdk.md: 169.254.77.1 is the server, the client of memif
// interface `id` is 169.254.77.(2 + id). `id` is at most 252.
constexpr uint32_t memif_network = 0xA9FE4D00, most_memif_id = 252;
constexpr IpAddress memif_server = ipv4_address(memif_network + 1);
constexpr uint16_t usual_port = 7077;

// Null with `why`: without DPDK, or where no server has been within `timeout_us`. `fault` says
// which: none of the former.
std::unique_ptr<NicLink> connect_memif(const std::string &path, uint32_t id, uint64_t timeout_us,
                                       const Link::KeepWaiting &keep_waiting, Fault *fault,
                                       std::string *why);

}  // namespace accel_rl::replay

#endif
