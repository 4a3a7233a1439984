// A server and its clients over lines in memory: whole exchanges over the network stacks of both, a
// server that stands in a network's path, and one that goes.

#include "nic_link.hpp"
#include "nic_transport.hpp"

#include <atomic>
#include <cstring>
#include <thread>

#include "frames.hpp"
#include "wires.hpp"

using namespace frames;
using namespace wires;

namespace {

constexpr Endpoint server_at{0x0A000001, 7077}, client_at{0x0A000002, 40000};
constexpr uint64_t second = 1000000;

// Both ends of a line; near is the server's.
struct Cable {
  Line to_server, to_client;
  std::unique_ptr<Nic> near(uint8_t last) {
    return std::make_unique<End>(&to_server, &to_client, last);
  }
  std::unique_ptr<Nic> far(uint8_t last) {
    return std::make_unique<End>(&to_client, &to_server, last);
  }
};

// A server of one or two cables, in a thread.
class Serving {
 public:
  explicit Serving(const std::vector<Cable *> &cables, bool forwards = false)
      : handler_(settings()) {
    std::vector<std::unique_ptr<Nic>> nics;
    for (size_t k = 0; k < cables.size(); ++k)
      nics.push_back(cables[k]->near(static_cast<uint8_t>(0xA0 + k)));
    transport_ = std::make_unique<NicTransport>(&handler_, std::move(nics), server_at, forwards,
                                                DatagramSettings{});
    thread_ = std::thread([this] {
      const Handler::Deliver deliver = [this](Peer &peer, FrameBuffer &frame) {
        transport_->deliver(peer, frame);
      };
      for (uint64_t now_ms = 1; !over_; ++now_ms) {
        if (!transport_->poll(now_ms)) sched_yield();
        handler_.go_on(now_ms, deliver);
        if (now_ms % 256 == 0) transport_->sweep(now_ms);
      }
      transport_->close(1);
    });
  }
  ~Serving() { stop(); }
  void stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  NetCounters counters() { return transport_->counters(); }

 private:
  Handler handler_;
  std::unique_ptr<NicTransport> transport_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

struct Client {
  NicLink link;
  uint64_t token = 0, next = 0;

  Client(std::unique_ptr<Nic> nic, const Endpoint &own, uint64_t greeting)
      : link(std::move(nic), own, server_at, greeting) {}

  Fault ask(Request request) {
    request.at(16, ++next);
    if (token) request.at(8, token);
    const Part part{request.bytes.data(), request.bytes.size()};
    return link.exchange(&part, 1, nullptr, 0, 20 * second, {});
  }
  Status status() { return static_cast<Status>(read_at<uint16_t>(link.reply() + 26)); }
  void hello() {
    CHECK(link.reach(20 * second, {}) == Fault::none, "nobody is there");
    CHECK(ask(Request(Op::hello)) == Fault::none && status() == Status::ok, "hello");
    token = read_at<uint64_t>(link.reply() + 8);
    link.set_frame_bytes(1u << 20);
  }
  // A payload goes there and back, in many datagrams if it is long.
  void echo(size_t bytes) {
    std::vector<uint8_t> payload(bytes);
    for (size_t k = 0; k < bytes; ++k) payload[k] = static_cast<uint8_t>(k * 31 >> 3);
    Request request(Op::ping);
    request.section(payload.data(), payload.size());
    CHECK(ask(std::move(request)) == Fault::none, "ping of %zu", bytes);
    CHECK(link.reply_bytes() == body_offset + bytes &&
              std::memcmp(link.reply() + body_offset, payload.data(), bytes) == 0,
          "ping of %zu came back as another", bytes);
  }
};

void test_exchanges() {
  Cable one, two;
  Serving serving({&one, &two});
  Client a(one.far(1), client_at, 1111), b(two.far(2), {client_at.address + 1, 1}, 2222);
  a.hello(), b.hello();
  CHECK(a.token != b.token, "two clients have one session");
  for (const size_t bytes : {size_t{1}, size_t{1300}, size_t{1400}, size_t{100000}})
    a.echo(bytes), b.echo(bytes);
  two.to_server.most = two.to_client.most = 7;  // most of a burst is lost
  b.echo(60000);
  serving.stop();
  CHECK(serving.counters().malformed == 0 && serving.counters().arp == 2, "counters");
}

// Between two hosts: what they say to each other passes unchanged, what they ask the server does
// not.
void test_in_network() {
  Cable left, right;
  Serving serving({&left, &right}, true);
  End actor(&left.to_client, &left.to_server, 1), learner(&right.to_client, &right.to_server, 2);
  std::vector<Packet> sent;
  uint64_t state = 99;
  for (int k = 0; k < 100; ++k) {
    Packet each(60 + static_cast<size_t>(random_between(&state, 0, 1454)));
    for (uint8_t &byte : each) byte = static_cast<uint8_t>(random_bits(&state));
    each[0] = static_cast<uint8_t>(each[0] & 0xFE), each[5] = 2;  // not the server's
    sent.push_back(each);
    const Part part{each.data(), each.size()};
    CHECK(actor.send(&part, 1), "no room");
  }
  std::vector<Packet> came;
  for (int tries = 0; tries < 200000 && came.size() < sent.size(); ++tries) {
    Part packets[32];
    const size_t count = learner.receive(packets, 32);
    for (size_t k = 0; k < count; ++k)
      came.emplace_back(packets[k].bytes, packets[k].bytes + packets[k].count);
    if (count == 0) sched_yield();
  }
  CHECK(came == sent, "%zu of %zu passed, or changed", came.size(), sent.size());
  Client a(left.far(1), client_at, 1111), b(right.far(2), {client_at.address + 1, 1}, 2222);
  a.hello(), b.hello();
  a.echo(3000), b.echo(3000);
  serving.stop();
  CHECK(serving.counters().forwarded == 100, "%llu forwarded",
        static_cast<unsigned long long>(serving.counters().forwarded));
  // An answer that came twice may be left, but nothing of what the other one and the server said.
  for (const Packet &each : left.to_client.packets) CHECK(each[5] == 1, "not for the actor");
  for (const Packet &each : right.to_client.packets) CHECK(each[5] == 2, "not for the learner");
}

void test_faults() {
  Cable cable;
  {
    NicLink alone(cable.far(1), client_at, server_at, 1);
    CHECK(alone.reach(20000, {}) == Fault::timed_out, "nobody is there");
    CHECK(alone.reach(0, [] { return false; }) == Fault::interrupted, "the caller gave up");
    cable.to_server.packets.clear();
  }
  Serving serving({&cable});
  Client client(cable.far(1), client_at, 1111);
  client.hello();
  client.token ^= 1;
  CHECK(client.ask(Request(Op::ping)) == Fault::closed, "a session that the server does not know");
  Client again(cable.far(1), client_at, 3333);
  again.hello();
  serving.stop();
  const Request request(Op::ping);
  const Part part{request.bytes.data(), request.bytes.size()};
  CHECK(again.link.exchange(&part, 1, nullptr, 0, 30000, {}) == Fault::timed_out, "in time");
  Client cut(cable.far(1), client_at, 4444);
  {
    Serving more({&cable});
    cut.hello();
  }
  cable.to_client.cut = true;
  CHECK(cut.ask(Request(Op::ping)) == Fault::closed, "a line that was cut");
}

}  // namespace

int main() {
  test_exchanges();
  test_in_network();
  test_faults();
  return finish();
}
