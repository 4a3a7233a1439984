// A client of a stream socket, in C++: what the Python client does, without Python.

#ifndef ACCEL_RL_REPLAY_CLIENT_SOCKET_LINK_HPP
#define ACCEL_RL_REPLAY_CLIENT_SOCKET_LINK_HPP

#include "byte_link.hpp"

namespace accel_rl::replay {

class SocketLink : public ByteLink {
 public:
  // Takes ownership of a connected socket. `busy`: poll the kernel, which takes a core, instead of
  // sleeping until something arrives.
  SocketLink(int file, bool busy);
  ~SocketLink() override;
  SocketLink(const SocketLink &) = delete;
  SocketLink &operator=(const SocketLink &) = delete;

 protected:
  ssize_t put(const uint8_t *from, size_t count) override;
  ssize_t take(uint8_t *to, size_t room) override;
  Fault wait(bool, Deadline *deadline) override { return deadline->fault(); }

 private:
  int file_, flags_;
};

}  // namespace accel_rl::replay

#endif
