// Sockets that wait for clients.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_LISTENER_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_LISTENER_HPP

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>

#include "../crypto/crypto.hpp"

namespace accel_rl::replay {

// A listening, non-blocking socket; its path, if it has one, goes with it.
class Listener {
 public:
  Listener() = default;
  ~Listener() { close(); }
  Listener(const Listener &) = delete;
  Listener &operator=(const Listener &) = delete;

  // An address in numbers, IPv4 or IPv6; port 0 takes a free one. Beyond the loopback only if
  // `secret` says that clients have to prove one. False with `why`.
  bool open_tcp(const std::string &host, uint16_t port, bool secret, std::string *why);
  // From now on what connects has to speak TLS.
  void require(std::unique_ptr<TlsAcceptor> tls) { tls_ = std::move(tls); }
  // A path that only its owner may open. One that a dead server left is taken over.
  bool open_unix(const std::string &path, std::string *why);
  // The same; who connects there is handed memory to talk through.
  bool open_shared(const std::string &path, std::string *why);
  void close();

  int file() const { return file_; }
  bool is_tcp() const { return path_.empty(); }
  bool shares_memory() const { return shares_memory_; }
  uint16_t port() const { return port_; }
  TlsAcceptor *tls() const { return tls_.get(); }

 private:
  bool fail(const std::string &what, std::string *why);

  int file_ = -1;
  uint16_t port_ = 0;
  bool shares_memory_ = false;
  std::string path_;
  struct stat bound_ = {};  // the path's
  std::unique_ptr<TlsAcceptor> tls_;
};

}  // namespace accel_rl::replay

#endif
