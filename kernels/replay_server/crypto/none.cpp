// Built without OpenSSL.

#include "crypto.hpp"

namespace accel_rl::replay {

bool crypto_built() { return false; }

Authenticator authenticator(const std::string &) { return {}; }

std::unique_ptr<TlsAcceptor> TlsAcceptor::open(const std::string &, const std::string &,
                                               std::string *why) {
  *why = "the server was built without OpenSSL";
  return nullptr;
}

}  // namespace accel_rl::replay
