#include "connect.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "../core/clock.hpp"

namespace accel_rl::replay {

namespace {

int connect_to(const sockaddr *address, socklen_t length, const std::string &name,
               uint64_t timeout_us, const Link::KeepWaiting &keep_waiting, std::string *why) {
  const int file = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file >= 0) {
    limit_waiting(file, timeout_us);
    const Retry retry(timeout_us, keep_waiting);
    do {
      if (connect(file, address, length) == 0 || errno == EISCONN) return file;
    } while (retry());
  }
  *why = name + ": " + std::strerror(errno);
  if (file >= 0) close(file);
  return -1;
}

}  // namespace

Retry::Retry(uint64_t timeout_us, const Link::KeepWaiting &keep_waiting)
    : end_us_(timeout_us > 0 ? clock_us() + timeout_us : UINT64_MAX), keep_waiting_(keep_waiting) {}

bool Retry::operator()() const {
  const bool late = errno == EINTR ? clock_us() >= end_us_
                                   : errno == EAGAIN || errno == EINPROGRESS || errno == EALREADY;
  if (late) errno = ETIMEDOUT;
  if (errno != EINTR) return false;
  if (!keep_waiting_ || keep_waiting_()) return true;
  errno = EINTR;
  return false;
}

int connect_unix(const std::string &path, uint64_t timeout_us,
                 const Link::KeepWaiting &keep_waiting, std::string *why) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    *why = "a socket's path must have 1 to " + std::to_string(sizeof address.sun_path - 1) +
           " bytes, got " + std::to_string(path.size());
    return -1;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return connect_to(reinterpret_cast<const sockaddr *>(&address), sizeof address, path, timeout_us,
                    keep_waiting, why);
}

int connect_tcp(const std::string &host, uint16_t port, uint64_t timeout_us,
                const Link::KeepWaiting &keep_waiting, std::string *why) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  const std::string number = std::to_string(port);
  if (getaddrinfo(host.c_str(), number.c_str(), &hints, &found) != 0 || !found) {
    *why = "host must be an address in numbers, got \"" + host + "\"";
    return -1;
  }
  const int file = connect_to(found->ai_addr, found->ai_addrlen, host + " port " + number,
                              timeout_us, keep_waiting, why);
  freeaddrinfo(found);
  const int on = 1;
  if (file >= 0) setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return file;
}

void limit_waiting(int file, uint64_t timeout_us) {
  const timeval most = {static_cast<time_t>(timeout_us / 1000000),
                        static_cast<suseconds_t>(timeout_us % 1000000)};
  setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

}  // namespace accel_rl::replay
