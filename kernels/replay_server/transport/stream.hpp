// Bytes from and to one client, in their order, for the event loop.

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

  // As recv(2) and send(2) do of a socket that does not block. EPROTO: the client broke the rules.
  virtual ssize_t receive(uint8_t *to, size_t room) = 0;
  virtual ssize_t send(const uint8_t *from, size_t count) = 0;
  // Whether bytes are here already that the socket does not know of any more.
  virtual bool holds() const { return false; }
  // Whether receive() gives all there is, if that is less than the room.
  virtual bool short_is_all() const { return true; }
  // No more is sent; what was still arrives.
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
