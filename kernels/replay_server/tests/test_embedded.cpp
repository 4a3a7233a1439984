// Clients in the server's own process, in threads beside those of sockets, and the golden trace by
// every link: the same requests have the same replies, byte for byte.

#include <atomic>

#include "connect.hpp"
#include "serving.hpp"
#include "shared_link.hpp"
#include "socket_link.hpp"
#include "trace.hpp"

using namespace frames;

static Status status(const Link &link) {
  return static_cast<Status>(get(link.reply(), field::header::status));
}

static uint64_t greet(Link &link) {
  CHECK(exchange(link, Request(Op::hello)) == Fault::none, "hello");
  return get(link.reply(), field::header::session);
}

static std::unique_ptr<Link> embed(Serving &server) {
  std::string why;
  auto link = server.embedded.open(&why);
  CHECK(link != nullptr, "%s", why.c_str());
  if (!link) abort();
  return link;
}

static void open_table(Link &link, uint64_t token, LimiterConfig limiter) {
  TableConfig config;
  config.name = "t", config.capacity = 1000, config.columns = {{"x", Dtype::i4, {}}};
  config.limiter = limiter;
  Request open(Op::open_table);
  open.bytes.resize(body_offset + description_bytes(config));
  std::memset(open.bytes.data() + header_bytes, 0, open.bytes.size() - header_bytes);
  write_description(open.bytes.data(), config);
  open.set(field::open_table::flags, open_create | open_described).close().session(token);
  CHECK(exchange(link, open) == Fault::none && status(link) == Status::ok, "open");
}

static void test_traces(const char *path) {
  std::string why;
  for (const bool busy : {false, true}) {
    Serving tcp({}), local({}), shared({});
    SocketLink by_tcp(connect_tcp("127.0.0.1", tcp.tcp.port(), 0, {}, &why), busy);
    SocketLink by_path(connect_unix(local.path, 0, {}, &why), busy);
    auto by_memory = SharedLink::open(shared.shared_path, busy, 0, {}, &why);
    if (!by_memory) abort();
    check_trace(path, by_tcp, "TCP");
    check_trace(path, by_path, "Unix socket");
    check_trace(path, *by_memory, "shared memory");
  }
  Serving server({});
  check_trace(path, *embed(server), "embedded");
  CHECK(server.counts().open == 0, "it is left");
}

// Pushes and samples of threads that share the handler with the loop's own clients.
static void test_threads(Idle idle) {
  LoopSettings wanted;
  wanted.idle = idle;
  Serving server(wanted);
  const auto first = embed(server);
  open_table(*first, greet(*first), {});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    std::shared_ptr<Link> link = embed(server);
    if (thread == 2) {
      std::string why;
      link = std::make_shared<SocketLink>(connect_unix(server.path, 0, {}, &why), false);
    }
    const uint64_t token = greet(*link);
    threads.emplace_back([link, token, &wrong] {
      for (uint64_t k = 1; k <= 200; ++k) {
        Request pushes = push({1, 2, 3, 4}), samples = sample(k, 16);
        pushes.session(token).number(2 * k), samples.session(token).number(2 * k + 1);
        if (exchange(*link, pushes) != Fault::none || status(*link) != Status::ok) ++wrong;
        if (exchange(*link, samples) != Fault::none || status(*link) != Status::ok) ++wrong;
      }
    });
  }
  for (std::thread &each : threads) each.join();
  CHECK(wrong == 0, "%d wrong replies", wrong.load());
  const auto lock = server.loop.hold();
  CHECK(server.handler.tables()[0]->stats().inserts == 3 * 200 * 4, "inserts");
}

// What waits for the limiter goes on by another client's request, whichever way that came, or is
// given up in time.
static void test_waiting() {
  Serving server({});
  const auto waiting = embed(server), other = embed(server);
  const uint64_t token = greet(*waiting), others = greet(*other);
  LimiterConfig limiter;
  limiter.min_size = 3;
  open_table(*waiting, token, limiter);
  const auto begin = std::chrono::steady_clock::now();
  Request late = sample(1, 2, 100);
  CHECK(exchange(*waiting, late.session(token)) == Fault::none, "it was dropped");
  CHECK(status(*waiting) == Status::retry, "there is nothing to draw");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5), "it took long");
  for (const bool by_socket : {false, true}) {
    std::thread helper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      Request pushes = push({1, 2});
      pushes.number(1 + by_socket);
      if (!by_socket) {
        exchange(*other, pushes.session(others));
        return;
      }
      FrameBuffer reply;
      const int file = server.dial();
      ask(file, pushes.session(greet(file)), &reply);
      close(file);
    });
    if (!by_socket) {  // two items are not three
      helper.join();
      continue;
    }
    late = sample(1, 2, 20000);
    CHECK(exchange(*waiting, late.session(token)) == Fault::none, "no reply");
    CHECK(status(*waiting) == Status::ok, "nothing was drawn");
    helper.join();
  }
}

static void test_ends() {
  auto server = std::make_unique<Serving>(LoopSettings());
  const auto link = embed(*server), bored = embed(*server), wrong = embed(*server);
  const uint64_t token = greet(*link), other = greet(*bored);
  LimiterConfig limiter;
  limiter.min_size = 3;
  open_table(*link, token, limiter);
  Request waits = sample(1, 2, 60000);
  waits.session(other);
  CHECK(exchange(*bored, waits, 20000) == Fault::timed_out, "it is there");
  {
    const auto third = embed(*server);
    waits.session(greet(*third));
    CHECK(exchange(*third, waits, 0, [] { return false; }) == Fault::interrupted, "it went on");
  }
  CHECK(server->counts().open == 3, "who left is counted");
  Request garbage(Op::ping);
  garbage.set(field::header::magic, 1);
  CHECK(exchange(*wrong, garbage) == Fault::closed, "an answer to garbage");
  CHECK(exchange(*wrong, Request(Op::hello)) == Fault::closed, "it goes on");
  Request longer(Op::ping);
  longer.session(token).set(field::header::length, 65);
  CHECK(exchange(*link, longer) == Fault::none && status(*link) == Status::malformed, "length");
  // A session that goes on elsewhere ends the link that had it, also while it waits.
  const auto before = embed(*server), after = embed(*server);
  Request again(Op::hello);
  again.set(field::hello::resume, greet(*before));
  std::thread taker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    exchange(*after, again);
  });
  waits.session(read_at<uint64_t>(again.bytes.data() + 40));
  CHECK(exchange(*before, waits) == Fault::closed, "it waits for ever");
  taker.join();
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    server->stop();
  });
  CHECK(exchange(*after, waits, 0) == Fault::closed, "a reply from nobody");
  stopper.join();
  std::string why;
  CHECK(!server->embedded.open(&why) && why == "the server is closed", "%s", why.c_str());
}

// A loop that nobody has run can be closed, too, and then needs nothing of what was added.
static void test_never_run() {
  Handler handler(settings());
  EventLoop loop(&handler, {});
  std::string why;
  {
    Embedded embedded(&handler, &loop);
    CHECK(loop.open(&why) && loop.add(&embedded, &why), "%s", why.c_str());
    const auto link = embedded.open(&why);
    loop.close();
    loop.close();
    CHECK(exchange(*link, Request(Op::hello)) == Fault::closed, "it is served");
    CHECK(!embedded.open(&why) && why == "the server is closed", "%s", why.c_str());
  }
  CHECK(handler.statistics().open == 0, "open");
}

int main(int count, char **arguments) {
  if (count == 2) test_traces(arguments[1]);
  for (const Idle idle : {Idle::block, Idle::spin, Idle::yield}) test_threads(idle);
  test_waiting();
  test_ends();
  test_never_run();
  return finish();
}
