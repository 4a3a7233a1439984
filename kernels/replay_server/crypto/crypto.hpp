// What takes OpenSSL: proofs of a secret, and TLS. Built without it the server has neither, and
// says so when it is asked for one.

#ifndef ACCEL_RL_REPLAY_CRYPTO_CRYPTO_HPP
#define ACCEL_RL_REPLAY_CRYPTO_CRYPTO_HPP

#include <sys/types.h>

#include <memory>
#include <string>

#include "../server/settings.hpp"

namespace accel_rl::replay {

bool crypto_built();

// Checks proofs of `secret`, and gives the server's own; empty where crypto is not built.
Authenticator authenticator(const std::string &secret);

// TLS over one connected, non-blocking socket, which its owner closes.
class Tls {
 public:
  virtual ~Tls() = default;
  // As recv() and send(), errno included; the handshake is made by the first calls.
  virtual ssize_t receive(uint8_t *to, size_t room) = 0;
  virtual ssize_t send(const uint8_t *from, size_t count) = 0;
  // Whether bytes are here already, of which the socket does not know any more.
  virtual bool holds() const = 0;
  // Tell the peer that nothing will follow.
  virtual void finish() = 0;
};

// Certificate and key of a server; TLS 1.3 and nothing older.
class TlsAcceptor {
 public:
  virtual ~TlsAcceptor() = default;
  // Of PEM files: a certificate chain and its unencrypted key. Null with `why`.
  static std::unique_ptr<TlsAcceptor> open(const std::string &certificate, const std::string &key,
                                           std::string *why);
  virtual std::unique_ptr<Tls> accept(int file) = 0;  // null: no memory
};

}  // namespace accel_rl::replay

#endif
