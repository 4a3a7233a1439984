#include "socket_link.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "connect.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint64_t slice_us = 50000;  // then a call that waits looks whether it is to go on

ssize_t moved(ssize_t bytes) {
  if (bytes > 0) return bytes;
  return bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

}  // namespace

SocketLink::SocketLink(int file, bool busy) : file_(file), flags_(busy ? MSG_DONTWAIT : 0) {
  limit_waiting(file_, slice_us);
}

SocketLink::~SocketLink() { close(file_); }

ssize_t SocketLink::put(const uint8_t *from, size_t count) {
  return moved(send(file_, from, count, MSG_NOSIGNAL | flags_));
}

ssize_t SocketLink::take(uint8_t *to, size_t room) { return moved(recv(file_, to, room, flags_)); }

}  // namespace accel_rl::replay
