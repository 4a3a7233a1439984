// Serves datagrams at ports of a network without a kernel between: looks at each in turn, for
// there is nothing to wait for.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_NIC_TRANSPORT_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_NIC_TRANSPORT_HPP

#include <memory>
#include <vector>

#include "../datagram/datagrams.hpp"
#include "../net/stack.hpp"
#include "transport.hpp"

namespace accel_rl::replay {

class NicTransport : public Transport, private Wire {
 public:
  // All ports have the same address. `forwards`: there are two, and what comes in at one and is not
  // for this server leaves by the other one unchanged, so that it can stand in a network's path.
  NicTransport(Handler *handler, std::vector<std::unique_ptr<Nic>> nics, const UdpEndpoint &own,
               bool forwards, DatagramSettings settings);

  int file() const override { return -1; }
  bool poll(uint64_t now_ms) override;
  void deliver(Peer &peer, FrameBuffer &frame) override;
  bool arm_wakeup() override { return false; }  // nothing would wake it
  void disarm_wakeup() override {}
  void close_idle(uint64_t now_ms) override;
  void close(uint64_t now_ms) override { datagrams_.close(now_ms); }

  NetCounters counters() const;  // of all ports
  const DatagramCounts &datagram_counts() const { return datagrams_.counts(); }

 private:
  struct Port {
    std::unique_ptr<Nic> nic;
    Stack stack;
    Stack::Take take;
    Stack::Foreign foreign;
    bool sends = false;  // something that flush() has to see off
  };
  // Where a peer is, as an Address holds it.
  struct Place {
    IpAddress address;
    uint16_t port, nic;
  };
  static_assert(sizeof(Place) <= Address::most_bytes, "an Address holds it");

  bool send(const Address &to, const uint8_t *header, const Part *parts, size_t count) override;
  void flush() override;
  uint32_t slice_bytes(const Address &to) const override;
  Place place(const Address &address) const;

  std::vector<std::unique_ptr<Port>> ports_;
  Datagrams datagrams_;
  uint64_t now_ms_ = 0;
};

}  // namespace accel_rl::replay

#endif
