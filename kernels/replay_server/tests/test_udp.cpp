// Datagrams through sockets of the kernel, and the golden trace by them.

#include <arpa/inet.h>

#include <atomic>
#include <thread>

#include "dial.hpp"
#include "event_loop.hpp"
#include "trace.hpp"
#include "udp.hpp"
#include "udp_link.hpp"

using namespace frames;

// A server, until the end of its block.
struct Server {
  Handler handler{settings()};
  Udp udp{&handler, {}};
  EventLoop loop{&handler, {}};
  std::thread thread;

  explicit Server(const char *host) {
    std::string why;
    CHECK(loop.open(&why) && udp.open(host, 0, false, &why), "%s", why.c_str());
    CHECK(loop.add(&udp, &why), "%s", why.c_str());
    thread = std::thread([this] { loop.run(); });
  }
  ~Server() { stop(); }
  void stop() {
    loop.stop();
    if (thread.joinable()) thread.join();
  }
  std::unique_ptr<UdpLink> dial(const char *host = "127.0.0.1", bool busy = false) {
    std::string why;
    auto link = UdpLink::open(host, udp.port(), busy, &why);
    if (!link) abort();
    link->set_frame_bytes(64u << 20);
    return link;
  }
};

static uint64_t greet(Link &link) {
  CHECK(exchange(link, Request(Op::hello)) == Fault::none, "hello");
  return get(link.reply(), field::header::session);
}

static void test_clients() {
  Server server("127.0.0.1");
  const auto first = server.dial();
  Request open(Op::open_table);
  TableConfig config;
  config.name = "t", config.capacity = 20000, config.columns = {{"x", Dtype::i4, {}}};
  open.bytes.resize(body_offset + description_bytes(config));
  std::memset(open.bytes.data() + header_bytes, 0, open.bytes.size() - header_bytes);
  write_description(open.bytes.data(), config);
  open.set(field::open_table::flags, open_create | open_described)
      .close()
      .session(greet(*first))
      .number(1ul);
  CHECK(exchange(*first, open) == Fault::none, "open");
  CHECK(get(first->reply(), field::header::status) == 0, "the table is refused");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    const std::shared_ptr<UdpLink> link = server.dial();
    const uint64_t token = greet(*link);
    threads.emplace_back([link, token, &wrong] {
      for (uint64_t k = 1; k <= 100; ++k) {
        Request samples = sample(k, 64);
        Request pushes = push(std::vector<int32_t>(k % 10 == 0 ? 20000 : 4));
        pushes.session(token).number(2 * k), samples.session(token).number(2 * k + 1);
        for (const Request *each : {&pushes, &samples})
          if (exchange(*link, *each) != Fault::none ||
              get(link->reply(), field::header::status) != 0)
            ++wrong;
      }
    });
  }
  for (std::thread &each : threads) each.join();
  CHECK(wrong == 0, "%d wrong replies", wrong.load());
  Request large(Op::ping);
  const std::vector<uint8_t> content((16u << 20) - 64, 7);
  large.section(content.data(), content.size())
      .session(get(first->reply(), field::header::session));
  CHECK(exchange(*first, large.number(2ul)) == Fault::none, "the largest frame");
  CHECK(first->reply_bytes() == large.bytes.size() &&
            std::memcmp(first->reply() + body_offset, content.data(), content.size()) == 0,
        "another reply");
  const auto lock = server.loop.hold();
  CHECK(server.handler.tables()[0]->stats().inserts == 3 * (10 * 20000 + 90 * 4), "inserts");
  CHECK(server.handler.statistics().open == 4, "open");
}

// Whoever throws garbage at the port is counted, and disturbs nobody.
static void test_garbage() {
  Server server("127.0.0.1");
  const auto link = server.dial();
  Request asks(Op::ping);
  asks.session(greet(*link));
  const int file = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.udp.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(file, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0) abort();
  uint64_t state = 5;
  std::vector<uint8_t> bytes(60000);
  for (uint8_t &each : bytes) each = static_cast<uint8_t>(random_bits(&state) >> 30);
  for (uint64_t k = 0; k < 200; ++k) {
    const size_t count = k % 3 == 0 ? bytes.size() : k;
    if (k % 2) std::memcpy(bytes.data(), asks.bytes.data(), header_bytes);  // as if it were one
    if (send(file, bytes.data(), count, 0) != static_cast<ssize_t>(count)) abort();
    CHECK(exchange(*link, asks.number(k + 1)) == Fault::none, "no reply beside garbage");
  }
  close(file);
  const auto lock = server.loop.hold();
  CHECK(server.udp.counts().malformed == 200, "%d are counted",
        static_cast<int>(server.udp.counts().malformed));
  CHECK(server.handler.statistics().malformed == 200, "and by the handler");
}

static void test_ends() {
  std::string why;
  Handler handler(settings());
  {
    Udp open(&handler, {});
    CHECK(!open.open("0.0.0.0", 0, false, &why) && why.find("secret") != std::string::npos,
          "beyond the loopback without a secret");
    CHECK(!open.open("localhost", 0, false, &why), "a host that is not in numbers");
  }
  Udp secret(&handler, {});
  CHECK(secret.open("0.0.0.0", 0, true, &why), "%s", why.c_str());
  Server server("127.0.0.1");
  const auto link = server.dial();
  Request asks(Op::ping);
  asks.session(greet(*link)).number(1ul);
  CHECK(exchange(*link, asks) == Fault::none, "ping");
  server.stop();
  CHECK(exchange(*link, asks.number(2ul)) == Fault::closed, "a reply from nobody");
  const auto nobody = UdpLink::open("127.0.0.1", server.udp.port(), false, &why);
  CHECK(exchange(*nobody, Request(Op::hello)) == Fault::closed, "nobody is there");
  Udp silent(&handler, {});
  CHECK(silent.open("127.0.0.1", 0, false, &why), "%s", why.c_str());
  const auto other = UdpLink::open("127.0.0.1", silent.port(), false, &why);
  CHECK(exchange(*other, Request(Op::hello), 300000) == Fault::timed_out, "it answers");
  CHECK(exchange(*other, Request(Op::hello), 0, [] { return false; }) == Fault::interrupted,
        "it goes on");
  const Part few = {asks.bytes.data(), 20};
  CHECK(other->exchange(&few, 1, nullptr, 0, 0, {}) == Fault::malformed, "no frame");
}

// What goes through the kernel as one message comes as the datagrams that were sent.
static void test_runs() {
  const int from = socket(AF_INET, SOCK_DGRAM, 0);
  int files[2];
  Address addresses[2], nowhere;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  for (int k = 0; k < 2; ++k) {
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK), address.sin_port = 0;
    files[k] = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(files[k], reinterpret_cast<sockaddr *>(&address), length) != 0 ||
        getsockname(files[k], reinterpret_cast<sockaddr *>(&address), &length) != 0)
      abort();
    const int room = 1 << 20;
    setsockopt(files[k], SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    UdpInbox::open(files[k]);
    addresses[k] = Address::of(&address, length);
  }
  address.sin_addr.s_addr = htonl(INADDR_BROADCAST);  // the kernel refuses, as no one asked for it
  nowhere = Address::of(&address, sizeof address);
  const struct {
    const Address *to;
    size_t bytes, times;
  } sent[] = {{&addresses[0], 1408, 50}, {&addresses[0], 20, 1},    {&addresses[1], 1408, 3},
              {&nowhere, 1408, 3},       {&addresses[0], 3000, 10}, {&addresses[0], 3001, 2},
              {&addresses[1], 0, 3},     {&addresses[0], 32768, 2}};
  UdpWire wire;
  wire.open(from, false);
  std::vector<uint8_t> content(32768);
  std::vector<std::vector<uint8_t>> wanted[2];
  for (const auto &each : sent)
    for (size_t time = 0; time < each.times; ++time) {
      uint8_t header[header_bytes];
      std::memset(header, static_cast<int>(time + 1), sizeof header);
      std::memset(content.data(), static_cast<int>(each.bytes + time), content.size());
      const Part parts[] = {{content.data(), each.bytes / 3},
                            {content.data(), each.bytes - each.bytes / 3}};
      wire.send(*each.to, header, parts, 2);
      wire.flush();
      if (each.to == &nowhere) continue;
      auto &whole = wanted[each.to - addresses].emplace_back(header, header + header_bytes);
      whole.insert(whole.end(), content.begin(), content.begin() + static_cast<long>(each.bytes));
    }
  wire.push();
  for (int k = 0; k < 2; ++k) {
    UdpInbox inbox;
    std::vector<std::vector<uint8_t>> got;
    for (int taken; (taken = inbox.take(files[k])) > 0;)
      for (int each = 0; each < taken; ++each)
        got.emplace_back(inbox.bytes(each), inbox.bytes(each) + inbox.count(each));
    CHECK(got == wanted[k], "others come: %d of %d", static_cast<int>(got.size()),
          static_cast<int>(wanted[k].size()));
    close(files[k]);
  }
  close(from);
}

int main(int count, char **arguments) {
  for (const char *host : {"127.0.0.1", "::1"})
    for (const bool busy : {false, true}) {
      Server server(host);
      if (count == 2) check_trace(arguments[1], *server.dial(host, busy), host);
    }
  test_runs();
  test_clients();
  test_garbage();
  test_ends();
  return finish();
}
