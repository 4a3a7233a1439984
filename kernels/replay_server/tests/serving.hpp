// A server with clients of its sockets, for tests of the event loop.

#ifndef ACCEL_RL_REPLAY_TESTS_SERVING_HPP
#define ACCEL_RL_REPLAY_TESTS_SERVING_HPP

#include <chrono>
#include <thread>

#include "dial.hpp"
#include "embedded.hpp"

namespace frames {

// A server on both kinds of sockets and with shared memory, until the end of its block.
struct Serving {
  char folder[32] = "/tmp/replay-serving-XXXXXX";
  std::string path, shared_path;
  Handler handler{settings()};
  Listener tcp, local, shared;
  EventLoop loop;
  Embedded embedded{&handler, &loop};
  std::thread thread;

  explicit Serving(LoopSettings wanted) : loop(&handler, wanted) {
    std::string why;
    if (!mkdtemp(folder)) abort();
    path = std::string(folder) + "/socket";
    shared_path = std::string(folder) + "/shared";
    CHECK(loop.open(&why) && tcp.open_tcp("127.0.0.1", 0, false, &why), "%s", why.c_str());
    CHECK(local.open_unix(path, &why) && shared.open_shared(shared_path, &why), "%s", why.c_str());
    CHECK(loop.add(&tcp, &why) && loop.add(&local, &why), "%s", why.c_str());
    CHECK(loop.add(&shared, &why) && loop.add(&embedded, &why), "%s", why.c_str());
    thread = std::thread([this] { loop.run(); });
  }
  ~Serving() {
    stop();
    local.close(), shared.close();
    rmdir(folder);
  }
  void stop() {
    loop.stop();
    if (thread.joinable()) thread.join();
  }
  int dial() { return wait_for(dial_unix(path)); }
  static int wait_for(int file) {  // at most some seconds
    const timeval most = {10, 0};
    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    return file;
  }
  Statistics counts() {
    const auto lock = loop.hold();
    return handler.statistics();
  }
  template <typename Condition>
  bool soon(Condition condition) {
    for (int k = 0; k < 500; ++k) {
      if (condition(counts())) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
};

inline Request ping(uint64_t token, size_t bytes) {
  Request request(Op::ping);
  const std::vector<uint8_t> content(bytes, 7);
  request.session(token).section(content.data(), bytes);
  return request;
}

}  // namespace frames

#endif
