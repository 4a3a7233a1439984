#include "nic_transport.hpp"

namespace accel_rl::replay {

NicTransport::NicTransport(Handler *handler, std::vector<std::unique_ptr<Nic>> nics,
                           const UdpEndpoint &own, bool forwards, DatagramSettings settings)
    : datagrams_(handler, this, this, settings) {
  for (auto &nic : nics) {
    Nic *each = nic.get();
    ports_.push_back(std::unique_ptr<Port>(new Port{std::move(nic), {each, own}, {}, {}}));
  }
  for (size_t k = 0; k < ports_.size(); ++k) {
    Port &port = *ports_[k];
    port.take = [this, k](const UdpEndpoint &from, const Part &datagram) {
      Place there = {};
      there.address = from.address, there.port = from.port, there.nic = static_cast<uint16_t>(k);
      datagrams_.receive(Address::of(&there, sizeof there), datagram.bytes, datagram.count,
                         now_ms_);
    };
    if (forwards)
      port.foreign = [other = ports_[1 - k].get()](const Part &packet) {
        other->sends = true;
        return other->nic->send(&packet, 1);
      };
  }
}

bool NicTransport::poll(uint64_t now_ms) {
  now_ms_ = now_ms;
  bool any = false;
  for (auto &port : ports_) {
    if (!port->stack.poll(now_ms, port->take, port->foreign)) continue;
    port->sends = any = true;  // answers to ARP and ping
  }
  flush();
  return any;
}

void NicTransport::deliver(Peer &peer, FrameBuffer &frame) { datagrams_.deliver(peer, frame); }

void NicTransport::close_idle(uint64_t now_ms) {
  now_ms_ = now_ms;
  datagrams_.close_idle(now_ms);
  flush();
}

NicTransport::Place NicTransport::place(const Address &address) const {
  Place there;
  std::memcpy(&there, address.bytes.data(), sizeof there);
  return there;
}

bool NicTransport::send(const Address &to, const uint8_t *header, const Part *parts, size_t count) {
  const Place there = place(to);
  Port &port = *ports_[there.nic];
  port.sends = true;
  return port.stack.send({there.address, there.port}, header, parts, count, now_ms_);
}

void NicTransport::flush() {
  for (auto &port : ports_) {
    if (!port->sends) continue;
    port->nic->flush();
    port->sends = false;
  }
}

uint32_t NicTransport::slice_bytes(const Address &to) const {
  return largest_slice(ports_[place(to).nic]->stack.datagram_bytes());
}

NetCounters NicTransport::counters() const {
  NetCounters sum;
  for (const auto &port : ports_) {
    uint64_t all[net_counters_count], each[net_counters_count];
    std::memcpy(all, &sum, sizeof sum);
    std::memcpy(each, &port->stack.counters(), sizeof each);
    for (size_t k = 0; k < net_counters_count; ++k) all[k] += each[k];
    std::memcpy(&sum, all, sizeof sum);
  }
  return sum;
}

}  // namespace accel_rl::replay
