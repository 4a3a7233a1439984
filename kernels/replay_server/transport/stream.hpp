// Byte stream of one client, for the event loop.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_STREAM_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_STREAM_HPP

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace accel_rl::replay {

class Stream {
 public:
  virtual ~Stream() = default;

  // As recv(2) and send(2) on a non-blocking socket. EPROTO: the client violated the protocol.
  virtual ssize_t receive(uint8_t *to, size_t room) = 0;
  virtual ssize_t send(const uint8_t *from, size_t count) = 0;
  // True if bytes are buffered that epoll no longer reports.
  virtual bool holds() const { return false; }
  // True if a short receive() means that nothing is left.
  virtual bool short_is_all() const { return true; }
  // Half-close: what was sent still arrives.
  virtual void end_sending() = 0;
};

class SocketStream : public Stream {
 public:
  explicit SocketStream(int file) : file_(file) {}  // whose owner is the connection

  ssize_t receive(uint8_t *to, size_t room) override { return recv(file_, to, room, 0); }
  ssize_t send(const uint8_t *from, size_t count) override {
    return ::send(file_, from, count, MSG_NOSIGNAL);
  }
  void end_sending() override { shutdown(file_, SHUT_WR); }

 private:
  int file_;
};

}  // namespace accel_rl::replay

#endif
