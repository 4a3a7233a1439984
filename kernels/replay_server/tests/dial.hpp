// Clients of a server's sockets, for tests of the event loop.

#ifndef ACCEL_RL_REPLAY_TESTS_DIAL_HPP
#define ACCEL_RL_REPLAY_TESTS_DIAL_HPP

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "frames.hpp"

namespace frames {

inline int dial_tcp(uint16_t port) {
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(file, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0) abort();
  return file;
}

inline int dial_unix(const std::string &path) {
  const int file = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (connect(file, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0) abort();
  return file;
}

// The reply to a request; its status, or malformed where the connection ended.
inline Status ask(int file, const Request &request, FrameBuffer *reply) {
  const uint8_t *from = request.bytes.data();
  for (size_t left = request.bytes.size(); left > 0;) {
    const ssize_t put = send(file, from, left, MSG_NOSIGNAL);
    if (put <= 0) return Status::malformed;
    from += put, left -= static_cast<size_t>(put);
  }
  reply->resize(header_bytes);
  Header header;
  if (recv(file, reply->data(), header_bytes, MSG_WAITALL) != ssize_t{header_bytes} ||
      read_header(reply->data(), UINT32_MAX, &header) != Status::ok)
    return Status::malformed;
  reply->resize(header.length);
  const size_t rest = header.length - header_bytes;
  if (recv(file, reply->data() + header_bytes, rest, MSG_WAITALL) != static_cast<ssize_t>(rest))
    return Status::malformed;
  return static_cast<Status>(header.status);
}

inline uint64_t greet(int file) {
  FrameBuffer reply;
  if (ask(file, Request(Op::hello), &reply) != Status::ok) return 0;
  return get(reply.data(), field::header::session);
}

}  // namespace frames

#endif
