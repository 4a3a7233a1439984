// A server and its clients over lines in memory: whole exchanges over the network stacks of both, a
// server that stands in a network's path, one that goes, and the proxy of a memif socket.

#include "memif_proxy.hpp"
#include "nic_link.hpp"
#include "nic_transport.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "frames.hpp"
#include "wires.hpp"

using namespace frames;
using namespace wires;

namespace {

struct Hosts {
  UdpEndpoint server, client, other;
};
constexpr Hosts ipv4{{ipv4_address(0x0A000001), 7077},
                     {ipv4_address(0x0A000002), 40000},
                     {ipv4_address(0x0A000003), 1}};
constexpr Hosts ipv6{{{{0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, 7077},
                     {{{0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}}, 40000},
                     {{{0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3}}, 1}};
constexpr uint64_t second = 1000000;

// Both ends of a line; near is the server's.
struct Cable {
  Line to_server, to_client;
  size_t mtu = 1500;
  std::unique_ptr<Nic> near(uint8_t last) {
    return std::make_unique<End>(&to_server, &to_client, last, mtu);
  }
  std::unique_ptr<Nic> far(uint8_t last) {
    return std::make_unique<End>(&to_client, &to_server, last, mtu);
  }
};

// A server of one or two cables, in a thread.
class Serving {
 public:
  Serving(const Hosts &hosts, const std::vector<Cable *> &cables, bool forwards = false)
      : handler_(settings()) {
    std::vector<std::unique_ptr<Nic>> nics;
    nics.reserve(cables.size());
    for (size_t k = 0; k < cables.size(); ++k)
      nics.push_back(cables[k]->near(static_cast<uint8_t>(0xA0 + k)));
    transport_ = std::make_unique<NicTransport>(&handler_, std::move(nics), hosts.server, forwards,
                                                DatagramSettings{});
    thread_ = std::thread([this] {
      const Handler::Deliver deliver = [this](Peer &peer, FrameBuffer &frame) {
        transport_->deliver(peer, frame);
      };
      // Of the clock: turns counted in its place outrun a client whose thread does not run.
      const auto began = std::chrono::steady_clock::now();
      for (uint64_t now_ms = 1, swept_ms = 0; !over_;) {
        if (!transport_->poll(now_ms)) sched_yield();
        handler_.serve_waiting(now_ms, deliver);
        if (now_ms >= swept_ms + 256) transport_->close_idle(swept_ms = now_ms);
        const std::chrono::duration<double, std::milli> passed =
            std::chrono::steady_clock::now() - began;
        now_ms = 1 + static_cast<uint64_t>(passed.count());
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

  Client(const Hosts &hosts, std::unique_ptr<Nic> nic, const UdpEndpoint &own, uint64_t greeting)
      : link(std::move(nic), own, hosts.server, greeting) {}

  Fault ask(Request request) {
    request.number(++next);
    if (token) request.session(token);
    const Part part{request.bytes.data(), request.bytes.size()};
    return link.exchange(&part, 1, nullptr, 0, 20 * second, {});
  }
  Status status() { return static_cast<Status>(get(link.reply(), field::header::status)); }
  void hello() {
    CHECK(link.await_server(20 * second, {}) == Fault::none, "nobody is there");
    CHECK(ask(Request(Op::hello)) == Fault::none && status() == Status::ok, "hello");
    token = get(link.reply(), field::header::session);
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

void test_exchanges(const Hosts &hosts) {
  Cable one, two;
  Serving serving(hosts, {&one, &two});
  Client a(hosts, one.far(1), hosts.client, 1111), b(hosts, two.far(2), hosts.other, 2222);
  a.hello(), b.hello();
  CHECK(a.token != b.token, "two clients have one session");
  for (const size_t bytes : {size_t{1}, size_t{1300}, size_t{1400}, size_t{100000}})
    a.echo(bytes), b.echo(bytes);
  two.to_server.most = two.to_client.most = 7;  // most of a burst is lost
  b.echo(60000);
  serving.stop();
  CHECK(serving.counters().malformed == 0 &&
            serving.counters().arp + serving.counters().solicitations == 2,
        "counters");
}

// Frames go in packets as large as the MTU allows, and no larger.
void test_mtu(const Hosts &hosts) {
  for (const size_t mtu : {size_t{1280}, size_t{1500}, size_t{9000}}) {
    Cable cable;
    cable.mtu = mtu;
    Serving serving(hosts, {&cable});
    Client client(hosts, cable.far(1), hosts.client, 1111);
    client.hello();
    client.echo(100000);
    serving.stop();
    for (const Line *line : {&cable.to_server, &cable.to_client})
      CHECK(line->largest == mtu + 14, "%zu bytes at an MTU of %zu", line->largest, mtu);
  }
}

// Between two hosts: what they say to each other passes unchanged, what they ask the server does
// not.
void test_in_network(const Hosts &hosts) {
  Cable left, right;
  Serving serving(hosts, {&left, &right}, true);
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
  Client a(hosts, left.far(1), hosts.client, 1111), b(hosts, right.far(2), hosts.other, 2222);
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
    NicLink alone(cable.far(1), ipv4.client, ipv4.server, 1);
    CHECK(alone.await_server(20000, {}) == Fault::timed_out, "nobody is there");
    CHECK(alone.await_server(0, [] { return false; }) == Fault::interrupted, "the caller gave up");
    cable.to_server.packets.clear();
  }
  Serving serving(ipv4, {&cable});
  Client client(ipv4, cable.far(1), ipv4.client, 1111);
  client.hello();
  client.token ^= 1;
  CHECK(client.ask(Request(Op::ping)) == Fault::closed, "a session that the server does not know");
  Client again(ipv4, cable.far(1), ipv4.client, 3333);
  again.hello();
  serving.stop();
  const Request request(Op::ping);
  const Part part{request.bytes.data(), request.bytes.size()};
  CHECK(again.link.exchange(&part, 1, nullptr, 0, 30000, {}) == Fault::timed_out, "in time");
  Client cut(ipv4, cable.far(1), ipv4.client, 4444);
  {
    Serving more(ipv4, {&cable});
    cut.hello();
  }
  cable.to_client.cut = true;
  CHECK(cut.ask(Request(Op::ping)) == Fault::closed, "a line that was cut");
}

// Like the one of DPDK that the proxy is for.
int inner_listener(const std::string &path) {
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  CHECK(bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0 &&
            listen(listener, 1) == 0,
        "no listener at %s", path.c_str());
  return listener;
}

int dial(const std::string &path) {
  const int made = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  CHECK(connect(made, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0, "no proxy");
  return made;
}

// One byte, and a file with it.
bool send_file(int to, int file) {
  char byte = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)] = {};
  iovec part = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = CMSG_LEN(sizeof file);
  cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  return sendmsg(to, &message, 0) == 1;
}

int receive_file(int from) {
  char byte;
  int file = -1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)];
  iovec part = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  if (recvmsg(from, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
    std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
  return file;
}

void test_door() {
  char folder[] = "/tmp/accel_rl_door_XXXXXX";
  CHECK(mkdtemp(folder) != nullptr, "no folder");
  const std::string path = std::string(folder) + "/socket";
  std::string why;
  CHECK(!MemifProxy::at(path + std::string(100, 'x'), &why), "a path that is too long");
  std::shared_ptr<MemifProxy> proxy = MemifProxy::at(path, &why);
  CHECK(proxy && MemifProxy::at(path, &why) == proxy, "one proxy: %s", why.c_str());
  const int listener = inner_listener(proxy->inner());
  // One who goes at once is still there for the listener until it was greeted.
  close(dial(path));
  const int early = accept(listener, nullptr, nullptr);
  pollfd gone = {early, POLLIN, 0};
  CHECK(poll(&gone, 1, 100) == 0, "the proxy did not wait for the greeting");
  char text[8];
  CHECK(send(early, "hello", 5, MSG_NOSIGNAL) == 5, "the greeting");
  CHECK(recv(early, text, sizeof text, 0) == 0, "and then it stayed");
  close(early);
  // Messages pass both ways, files with them; and the end.
  const int client = dial(path), served = accept(listener, nullptr, nullptr);
  CHECK(send(served, "hello", 5, 0) == 5 && recv(client, text, sizeof text, 0) == 5, "greeting");
  int ends[2];
  CHECK(pipe(ends) == 0 && send_file(client, ends[1]), "no file sent");
  const int came = receive_file(served);
  CHECK(came >= 0 && write(came, "x", 1) == 1 && read(ends[0], text, 1) == 1, "another file");
  close(client);
  CHECK(recv(served, text, sizeof text, 0) == 0, "the client's end");
  for (const int each : {served, came, ends[0], ends[1], listener}) close(each);
  proxy.reset();
  CHECK(rmdir(folder) == 0, "the proxy left something");
}

}  // namespace

int main() {
  test_door();
  for (const Hosts &hosts : {ipv4, ipv6}) {
    test_exchanges(hosts);
    test_in_network(hosts);
    test_mtu(hosts);
  }
  test_faults();
  return finish();
}
