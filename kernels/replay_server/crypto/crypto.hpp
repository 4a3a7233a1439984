// What takes OpenSSL: proofs of a secret, and TLS. Built without it the server has neither, and
// says so when it is asked for one.

#ifndef ACCEL_RL_REPLAY_CRYPTO_CRYPTO_HPP
#define ACCEL_RL_REPLAY_CRYPTO_CRYPTO_HPP

#include <memory>
#include <string>

#include "../server/settings.hpp"
#include "../transport/stream.hpp"

namespace accel_rl::replay {

bool crypto_built();

// Checks proofs of `secret`, and gives the server's own; empty where crypto is not built.
Authenticator authenticator(const std::string &secret);

// Certificate and key of a server; TLS 1.3 and nothing older.
class TlsAcceptor {
 public:
  virtual ~TlsAcceptor() = default;
  // Load PEM files: a certificate chain and its unencrypted key. Null with `why`.
  static std::unique_ptr<TlsAcceptor> open(const std::string &certificate, const std::string &key,
                                           std::string *why);
  // TLS over a connected socket that does not block, which its owner closes; the handshake is made
  // by the first calls. Null: no memory.
  virtual std::unique_ptr<Stream> accept(int file) = 0;
};

}  // namespace accel_rl::replay

#endif
