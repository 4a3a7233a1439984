// The event loop with clients in threads of their own: good ones, one that sends garbage, one that
// does not read, and one that leaves in the middle of a frame.

#include <unistd.h>

#include <atomic>
#include <thread>

#include "dial.hpp"
#include "event_loop.hpp"

using namespace frames;

static std::atomic<int> wrong{0};

static void work(int file) {
  FrameBuffer reply;
  const uint64_t token = greet(file);
  for (uint64_t k = 1; k <= 200; ++k) {
    Request pushes = push({1, 2, 3, 4});
    Request samples = sample(k, 64);
    pushes.session(token).number(2 * k);
    samples.session(token).number(2 * k + 1);
    if (ask(file, pushes, &reply) != Status::ok) ++wrong;
    if (ask(file, samples, &reply) != Status::ok) ++wrong;
  }
  close(file);
}

static void send_garbage(int file) {
  FrameBuffer reply;
  Request garbage(Op::ping);
  garbage.set(field::header::magic, 0x20544547);
  if (ask(file, garbage, &reply) != Status::malformed) ++wrong;
  close(file);
}

static void never_read(int file) {
  Request asks = sample(1, 10000);
  asks.session(greet(file));
  timeval wait = {0, 100000};
  setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  for (int k = 0; k < 200; ++k)
    if (send(file, asks.bytes.data(), asks.bytes.size(), MSG_NOSIGNAL) < 0) break;
  close(file);
}

static void leave_early(int file) {
  Request half = push({1, 2, 3, 4});
  half.session(greet(file));
  if (send(file, half.bytes.data(), 70, MSG_NOSIGNAL) != 70) ++wrong;
  close(file);
}

int main() {
  char folder[] = "/tmp/replay-sockets-XXXXXX";
  if (!mkdtemp(folder)) abort();
  const std::string path = std::string(folder) + "/socket";
  std::string why;
  {
    Handler handler(settings());
    Listener tcp, local;
    EventLoop loop(&handler, {});
    CHECK(!tcp.open_tcp("0.0.0.0", 0, false, &why), "beyond the loopback without a secret");
    CHECK(loop.open(&why) && tcp.open_tcp("127.0.0.1", 0, false, &why), "%s", why.c_str());
    CHECK(local.open_unix(path, &why), "%s", why.c_str());
    CHECK(loop.add(&tcp, &why) && loop.add(&local, &why), "%s", why.c_str());
    std::thread server([&] { loop.run(); });
    const int first = dial_tcp(tcp.port());
    FrameBuffer reply;
    const uint64_t token = greet(first);
    Request open = opening(1000);
    open.session(token);
    CHECK(ask(first, open, &reply) == Status::ok, "open");
    std::vector<std::thread> clients;
    for (int k = 0; k < 3; ++k) {
      clients.emplace_back(work, dial_tcp(tcp.port()));
      clients.emplace_back(work, dial_unix(path));
    }
    clients.emplace_back(send_garbage, dial_tcp(tcp.port()));
    clients.emplace_back(never_read, dial_tcp(tcp.port()));
    clients.emplace_back(leave_early, dial_unix(path));
    for (std::thread &each : clients) each.join();
    CHECK(wrong == 0, "%d wrong replies", wrong.load());
    {
      const auto lock = loop.hold();
      CHECK(handler.tables()[0]->stats().inserts == 6 * 200 * 4, "inserts");
      CHECK(handler.statistics().malformed == 1, "malformed");
    }
    loop.stop();
    server.join();
    CHECK(handler.statistics().open == 0, "%d connections are left",
          static_cast<int>(handler.statistics().open));
    close(first);
  }
  CHECK(access(path.c_str(), F_OK) != 0, "the socket is left");
  rmdir(folder);
  return finish();
}
