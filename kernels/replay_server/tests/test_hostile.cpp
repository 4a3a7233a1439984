// The event loop among clients that want its memory, its places or its time.

#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <memory>

#include "serving.hpp"

using namespace frames;

static bool at_its_end(int file) {
  uint8_t bytes[4096];
  ssize_t got;
  while ((got = recv(file, bytes, sizeof bytes, 0)) > 0) {
  }
  return got == 0 || errno == ECONNRESET;
}

// A process that was forked holds the sockets, too: a connection ends all the same, and is not
// looked at any more.
static void test_fork() {
  Serving server({});
  const int file = Serving::wait_for(dial_tcp(server.tcp.port()));
  greet(file);
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  Request garbage(Op::bye);
  garbage.session(1);
  FrameBuffer reply;
  ask(file, garbage, &reply);
  // Ended by its own side, too, so that the server need not wait for it.
  CHECK(at_its_end(file), "the child keeps it open");
  send(file, "more", 4, MSG_NOSIGNAL);
  shutdown(file, SHUT_RDWR);
  CHECK(server.soon([](const Statistics &now) { return now.open == 0; }), "it is left");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const int second = server.dial();
  CHECK(greet(second) != 0, "nobody is served");
  close(second), close(file);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// Memory for what comes is given back by those that do not need it now.
static void test_idle_memory() {
  LoopSettings wanted;
  wanted.buffer_bytes = 512 << 10;
  Serving server(wanted);
  FrameBuffer reply;
  std::vector<int> files;
  for (int k = 0; k < 6; ++k) {
    files.push_back(server.dial());
    const uint64_t token = greet(files.back());
    CHECK(ask(files.back(), ping(token, 200 << 10), &reply) == Status::ok, "client %d", k);
  }
  for (const int file : files) close(file);
}

// Without room a connection ends, though its client stays and sends on.
static void test_no_room() {
  LoopSettings wanted;
  wanted.buffer_bytes = 1;
  Serving server(wanted);
  const int file = server.dial();
  const Request hello(Op::hello);
  send(file, hello.bytes.data(), hello.bytes.size(), MSG_NOSIGNAL);
  CHECK(server.soon([](const Statistics &now) { return now.connections == 1 && now.open == 0; }),
        "it is left");
  close(file);
}

// All that clients leave unread together has a cap; who leaves little goes on.
static void test_unread() {
  LoopSettings wanted;
  wanted.unread_bytes = 4 << 20;
  Serving server(wanted);
  FrameBuffer reply;
  const int good = server.dial();
  const uint64_t token = greet(good);
  std::vector<int> files;
  for (int k = 0; k < 10; ++k) {
    files.push_back(server.dial());
    const Request request = ping(greet(files.back()), 2 << 20);
    send(files.back(), request.bytes.data(), request.bytes.size(), MSG_NOSIGNAL);
  }
  CHECK(server.soon([](const Statistics &now) { return now.slow >= 7; }), "nobody was dropped");
  CHECK(ask(good, ping(token, 1 << 20), &reply) == Status::ok, "a good one was");
  for (const int file : files) close(file);
  close(good);
}

// A client that reads only where its requests are left waiting always leaves much unread. It holds
// little of the server's memory all the same: what was sent of its replies is not kept.
static void test_unread_of_one() {
  LoopSettings wanted;
  wanted.unread_bytes = 3 << 20;
  Serving server(wanted);
  const int file = server.dial();
  const Request request = ping(greet(file), 200 << 10);
  const size_t length = request.bytes.size(), most = 100 * length;
  std::vector<uint8_t> nowhere(16 << 10);
  pollfd state = {file, POLLOUT, 0};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (size_t sent = 0, at = 0; sent < most; at = sent % length) {
    const bool waits = poll(&state, 1, 2) == 0;
    // Neither call waits: the server may not have had its turn yet.
    const ssize_t moved =
        waits ? recv(file, nowhere.data(), nowhere.size(), MSG_DONTWAIT)
              : send(file, request.bytes.data() + at, length - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    const bool ended = moved == 0 || (moved < 0 && errno != EAGAIN);
    if (ended || std::chrono::steady_clock::now() > end) {
      CHECK(false, "it ended after %zu bytes", sent);
      break;
    }
    if (!waits && moved > 0) sent += static_cast<size_t>(moved);
  }
  close(file);
}

// Those that do not introduce themselves take each other's places.
static void test_handshakes() {
  LoopSettings wanted;
  wanted.handshakes = 3;
  Serving server(wanted);
  const int good = server.dial();
  const uint64_t token = greet(good);
  std::vector<int> silent;
  for (int k = 0; k < 5; ++k) {
    silent.push_back(server.dial());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the clock is coarse
  }
  CHECK(at_its_end(silent[0]) && at_its_end(silent[1]), "they were not dropped");
  CHECK(server.counts().open == 4 && server.counts().turned_away == 2, "or others were");
  FrameBuffer reply;
  CHECK(ask(good, ping(token, 10), &reply) == Status::ok, "the client was");
  for (const int file : silent) close(file);
  close(good);
}

// The server's end of a connection, which this process has, too.
static int other_end(int file) {
  sockaddr_in own = {}, peer = {};
  socklen_t bytes = sizeof own;
  getsockname(file, reinterpret_cast<sockaddr *>(&own), &bytes);
  for (int other = 3; other < 256; ++other) {
    bytes = sizeof peer;
    if (getpeername(other, reinterpret_cast<sockaddr *>(&peer), &bytes) == 0 &&
        peer.sin_family == AF_INET && peer.sin_port == own.sin_port)
      return other;
  }
  return -1;
}

static void test_vanished_machines() {
  Serving server({});
  const int file = dial_tcp(server.tcp.port());
  greet(file);
  const int other = other_end(file);
  int idle = 0, timeout = 0;
  socklen_t bytes = sizeof idle;
  getsockopt(other, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &bytes);
  getsockopt(other, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, &bytes);
  CHECK(idle <= 30 && idle > 0, "first asked after %d s", idle);
  CHECK(timeout <= 30000 && timeout > 0, "given up after %d ms", timeout);
  close(file);
}

int main() {
  test_fork();
  test_idle_memory();
  test_no_room();
  test_unread();
  test_unread_of_one();
  test_handshakes();
  test_vanished_machines();
  return finish();
}
