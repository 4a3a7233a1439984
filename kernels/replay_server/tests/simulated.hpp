// A network that loses, doubles, delays and damages datagrams as a seed says, in its own time.

#ifndef ACCEL_RL_REPLAY_TESTS_SIMULATED_HPP
#define ACCEL_RL_REPLAY_TESTS_SIMULATED_HPP

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "caller.hpp"
#include "datagrams.hpp"
#include "frames.hpp"

namespace simulated {

using namespace frames;

struct Faults {
  double lost = 0, doubled = 0, delayed = 0, damaged = 0;
};

inline Address address_of(uint32_t client) { return Address::of(&client, sizeof client); }

class Network {
 public:
  struct Datagram {
    bool to_server;
    uint32_t client;
    std::vector<uint8_t> bytes;
  };

  Network(uint64_t seed, Faults faults) : faults_(faults), state_(seed) {}

  uint64_t now_us = 1000000;
  uint64_t lost = 0, doubled = 0, damaged = 0;
  uint32_t slice = usual_slice;

  void post(Datagram datagram) {
    const bool twice = chance(faults_.doubled);
    if (twice) ++doubled, arrive(datagram);
    arrive(std::move(datagram));
  }
  bool any() const { return !queue_.empty(); }
  uint64_t next_us() const { return queue_.begin()->first; }
  Datagram take() {
    Datagram first = std::move(queue_.begin()->second);
    queue_.erase(queue_.begin());
    return first;
  }

 private:
  bool chance(double share) { return static_cast<double>(draw() % 1000000) < share * 1e6; }
  uint64_t draw() { return random_bits(&state_) >> 20; }
  void arrive(Datagram datagram) {
    if (chance(faults_.lost)) {
      ++lost;
      return;
    }
    if (chance(faults_.damaged)) {
      ++damaged;
      datagram.bytes[draw() % datagram.bytes.size()] ^= static_cast<uint8_t>(1 + draw() % 255);
    }
    const uint64_t late = chance(faults_.delayed) ? draw() % 3000 : draw() % 5;
    queue_.emplace(now_us + 20 + late, std::move(datagram));
  }

  Faults faults_;
  uint64_t state_;
  std::multimap<uint64_t, Datagram> queue_;  // by arrival
};

// One end of the network.
class End : public Wire {
 public:
  End(Network *network, bool of_server) : network_(network), of_server_(of_server) {}

  bool send(const Address &to, const uint8_t *header, const Part *parts, size_t count) override {
    std::vector<uint8_t> bytes(header, header + header_bytes);
    for (size_t k = 0; k < count; ++k)
      bytes.insert(bytes.end(), parts[k].bytes, parts[k].bytes + parts[k].count);
    if (record) sent.push_back(bytes);
    network_->post({!of_server_, read_at<uint32_t>(to.bytes.data()), std::move(bytes)});
    return true;
  }
  void flush() override {}
  uint32_t slice_bytes(const Address &) const override { return network_->slice; }

  bool record = false;
  std::vector<std::vector<uint8_t>> sent;

 private:
  Network *network_;
  bool of_server_;
};

struct Client {
  Client(Network *net, uint32_t which)
      : network(net), end(net, false), caller(0x1000 + which, address_of(which), &end) {
    room.resize(1 << 16);
  }

  Network *network;
  End end;
  Caller caller;
  FrameBuffer room;
  uint64_t token = 0, number = 0;
  std::vector<Request> script;  // in their order
  size_t done = 0;
  std::vector<Part> parts;
  std::function<void(Client &)> on_reply = [](Client &) {};

  void begin() {
    Request &request = script[done];
    request.number(++number);
    if (get(request.bytes.data(), field::header::session) == first_token) request.session(token);
    const uint8_t *bytes = request.bytes.data();
    // In pieces of odd sizes, as columns are.
    parts.assign(1, Part{bytes, body_offset});
    for (size_t at = body_offset; at < request.bytes.size();) {
      const size_t taken = std::min<size_t>(request.bytes.size() - at, 1 + at * 7 % 4099);
      parts.push_back({bytes + at, taken});
      at += taken;
    }
    const bool begun =
        caller.begin(parts.data(), parts.size(), room.data(), room.size(), network->now_us);
    CHECK(begun, "request %u cannot be sent", static_cast<unsigned>(done));
    caller.pump(network->now_us);
  }
  Status status() const {
    return caller.fault() == Fault::none
               ? static_cast<Status>(get(caller.reply(), field::header::status))
               : Status::malformed;
  }
};

// A server and its clients.
struct World {
  Network network;
  End end{&network, true};
  Handler handler;
  Datagrams server;
  std::vector<std::unique_ptr<Client>> clients;
  bool dead = false;  // nothing reaches the server

  World(uint64_t seed, Faults faults, Settings wanted = settings(), DatagramSettings caps = {})
      : network(seed, faults), handler(std::move(wanted)), server(&handler, &end, nullptr, caps) {}
  ~World() { server.close(now_ms()); }

  uint64_t now_ms() const { return network.now_us / 1000; }
  Client &add() {
    clients.push_back(std::make_unique<Client>(&network, static_cast<uint32_t>(clients.size())));
    return *clients.back();
  }

  void step() {
    uint64_t next = swept_us_ + 250000;
    for (const auto &each : clients)
      if (each->caller.busy()) next = std::min(next, each->caller.next_us());
    if (network.any()) next = std::min(next, network.next_us());
    if (const uint64_t deadline = handler.deadline_ms()) next = std::min(next, deadline * 1000);
    network.now_us = std::max(network.now_us, next);
    while (network.any() && network.next_us() <= network.now_us) {
      const Network::Datagram each = network.take();
      if (!each.to_server)
        clients[each.client]->caller.receive(each.bytes.data(), each.bytes.size(), network.now_us);
      else if (!dead)
        server.receive(address_of(each.client), each.bytes.data(), each.bytes.size(), now_ms());
    }
    handler.serve_waiting(now_ms(),
                          [this](Peer &peer, FrameBuffer &frame) { server.deliver(peer, frame); });
    if (network.now_us >= swept_us_ + 250000) {
      swept_us_ = network.now_us;
      server.close_idle(now_ms());
    }
    for (const auto &each : clients) each->caller.pump(network.now_us);
  }

  // All scripts to their end, or to a fault; at most so many seconds.
  void run(double seconds = 600) {
    const auto end_us = network.now_us + static_cast<uint64_t>(seconds * 1e6);
    for (const auto &each : clients)
      if (each->done < each->script.size()) each->begin();
    for (;;) {
      bool any = false;
      for (const auto &each : clients) {
        Client &client = *each;
        if (!client.caller.busy() && client.done < client.script.size() &&
            client.caller.fault() == Fault::none) {
          const uint8_t *reply = client.caller.reply();
          if (get(reply, field::header::op) == static_cast<uint8_t>(Op::welcome)) {
            client.token = get(reply, field::header::session);
            client.caller.set_frame_bytes(get(reply, field::welcome::frame_bytes));
          }
          client.on_reply(client);
          if (++client.done < client.script.size()) client.begin();
        }
        any = any || client.caller.busy();
      }
      if (!any || network.now_us > end_us) return;
      step();
    }
  }
  // What is still on its way.
  void drain() {
    while (network.any()) step();
  }

 private:
  uint64_t swept_us_ = 1000000;
};

inline std::vector<int32_t> numbers(uint32_t count, int32_t first) {
  std::vector<int32_t> made(count);
  for (uint32_t k = 0; k < count; ++k) made[k] = first + static_cast<int32_t>(k);
  return made;
}

}  // namespace simulated

#endif
