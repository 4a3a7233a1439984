// Serves clients by datagrams of UDP.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_UDP_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_UDP_HPP

#include <string>

#include "../datagram/datagrams.hpp"
#include "transport.hpp"
#include "udp_wire.hpp"

namespace accel_rl::replay {

class Udp : public Transport {
 public:
  Udp(Handler *handler, DatagramSettings settings) : datagrams_(handler, &wire_, this, settings) {}
  ~Udp() override { release(); }
  Udp(const Udp &) = delete;
  Udp &operator=(const Udp &) = delete;

  // As Listener::open_tcp.
  bool open(const std::string &host, uint16_t port, bool secret, std::string *why);
  uint16_t port() const { return port_; }
  const DatagramCounts &counts() const { return datagrams_.counts(); }

  int file() const override { return file_; }
  bool poll(uint64_t now_ms) override;
  void deliver(Peer &peer, FrameBuffer &frame) override;
  bool arm_wakeup() override { return true; }  // the kernel says when something has come
  void disarm_wakeup() override {}
  void close_idle(uint64_t now_ms) override;
  void close(uint64_t now_ms) override;

 private:
  void release();

  int file_ = -1;
  uint16_t port_ = 0;
  UdpWire wire_;
  UdpInbox inbox_;
  int next_ = 0, count_ = 0;  // of what is in it: the next to handle
  Datagrams datagrams_;
};

}  // namespace accel_rl::replay

#endif
