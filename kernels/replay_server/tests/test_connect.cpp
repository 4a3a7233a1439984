// A server that accepts nobody is waited for as long as was said, whatever signals come meanwhile.

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "check.h"
#include "shared_link.hpp"

using namespace accel_rl::replay;

int main() {
  char folder[] = "/tmp/replay-slow-XXXXXX";
  if (!mkdtemp(folder)) abort();
  const std::string path = std::string(folder) + "/socket";
  const int slow = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (bind(slow, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0) abort();
  if (listen(slow, 0) != 0) abort();  // one may wait to be accepted; others wait for a place
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  const auto open = [&path](uint64_t timeout_us, const Link::KeepWaiting &keep_waiting,
                            std::string *why) {
    std::atomic<bool> over{false};
    std::thread teaser([&over, waits = pthread_self()] {
      while (!over) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        pthread_kill(waits, SIGUSR1);
      }
    });
    const auto begin = std::chrono::steady_clock::now();
    CHECK(!SharedLink::open(path, false, timeout_us, keep_waiting, why), "there is memory");
    const auto took = std::chrono::steady_clock::now() - begin;
    over = true;
    teaser.join();
    return std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
  };
  std::string why;
  for (const char *what : {"greeting", "place"}) {
    const auto took_ms = open(200000, {}, &why);
    CHECK(took_ms >= 190 && took_ms < 5000, "waits %d ms for a %s", int(took_ms), what);
    CHECK(why.find("timed out") != std::string::npos, "%s", why.c_str());
  }
  open(20000000, [] { return false; }, &why);
  CHECK(why.find("Interrupted") != std::string::npos, "%s", why.c_str());
  close(slow);
  unlink(path.c_str());
  rmdir(folder);
  return finish();
}
