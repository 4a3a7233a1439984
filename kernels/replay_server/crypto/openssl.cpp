#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "../protocol/parser.hpp"
#include "crypto.hpp"

namespace accel_rl::replay {

namespace {

std::string last_error() {
  char text[256] = "no reason given";
  if (const unsigned long code = ERR_get_error()) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return text;
}

bool prove(const std::string &secret, const char *side, const uint8_t *transcript, size_t bytes,
           uint8_t *mac) {
  std::string message = std::string("accel_rl replay 1 ") + side;
  message.append(reinterpret_cast<const char *>(transcript), bytes);
  unsigned int length = 0;
  return HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
              reinterpret_cast<const uint8_t *>(message.data()), message.size(), mac, &length) &&
         length == mac_bytes;
}

int most_of(size_t count) { return static_cast<int>(std::min<size_t>(count, INT_MAX)); }

class TlsStream final : public Stream {
 public:
  TlsStream(SSL *ssl, int file) : ssl_(ssl), file_(file) {}
  ~TlsStream() override { SSL_free(ssl_); }

  ssize_t receive(uint8_t *to, size_t room) override {
    ERR_clear_error();
    return outcome(SSL_read(ssl_, to, most_of(room)));
  }

  ssize_t send(const uint8_t *from, size_t count) override {
    ERR_clear_error();
    return outcome(SSL_write(ssl_, from, most_of(count)));
  }

  bool holds() const override { return SSL_pending(ssl_) > 0; }
  bool short_is_all() const override { return false; }  // but a record

  void end_sending() override {
    if (!failed_ && SSL_is_init_finished(ssl_)) SSL_shutdown(ssl_);
    ERR_clear_error();
    shutdown(file_, SHUT_WR);
  }

 private:
  ssize_t outcome(int done) {
    if (done > 0) return done;
    switch (SSL_get_error(ssl_, done)) {
      // A server writes unasked only in the handshake, where its few bytes find an empty socket.
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
      case SSL_ERROR_ZERO_RETURN:
        return 0;
      default:
        failed_ = true;
        ERR_clear_error();
        errno = ECONNRESET;
        return -1;
    }
  }

  SSL *ssl_;
  int file_;
  bool failed_ = false;  // nothing may be said any more
};

class OpenSslAcceptor final : public TlsAcceptor {
 public:
  OpenSslAcceptor() : context_(SSL_CTX_new(TLS_server_method())) {}
  ~OpenSslAcceptor() override { SSL_CTX_free(context_); }

  bool load(const std::string &certificate, const std::string &key, std::string *why) {
    if (!context_) {
      *why = last_error();
      return false;
    }
    SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION);
    SSL_CTX_set_num_tickets(context_, 0);  // sessions of ours are resumed by their token
    SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
    // What could not be sent is sent from elsewhere the next time, and in other amounts.
    SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                   SSL_MODE_RELEASE_BUFFERS);
    // Nobody is here to be asked for the password of a key.
    SSL_CTX_set_default_passwd_cb(context_, [](char *, int, int, void *) { return -1; });
    if (SSL_CTX_use_certificate_chain_file(context_, certificate.c_str()) != 1)
      return fail("certificate " + certificate, why);
    if (SSL_CTX_use_PrivateKey_file(context_, key.c_str(), SSL_FILETYPE_PEM) != 1)
      return fail("key " + key, why);
    if (SSL_CTX_check_private_key(context_) != 1)
      return fail("key " + key + " is not that of certificate " + certificate, why);
    return true;
  }

  std::unique_ptr<Stream> accept(int file) override {
    SSL *ssl = SSL_new(context_);
    if (!ssl) return nullptr;
    auto tls = std::make_unique<TlsStream>(ssl, file);
    if (SSL_set_fd(ssl, file) != 1) return nullptr;
    SSL_set_accept_state(ssl);
    return tls;
  }

 private:
  bool fail(const std::string &what, std::string *why) {
    *why = what + ": " + last_error();
    return false;
  }

  SSL_CTX *context_;
};

}  // namespace

bool crypto_built() { return true; }

Authenticator authenticator(const std::string &secret) {
  return [secret](const uint8_t *transcript, const uint8_t *mac, uint64_t token, uint8_t *own) {
    uint8_t expected[EVP_MAX_MD_SIZE];
    if (!prove(secret, "client", transcript, transcript_bytes, expected) ||
        CRYPTO_memcmp(expected, mac, mac_bytes) != 0)
      return false;
    uint8_t message[transcript_bytes + sizeof token];
    std::memcpy(message, transcript, transcript_bytes);
    write_at(message + transcript_bytes, token);
    uint8_t proof[EVP_MAX_MD_SIZE];
    if (!prove(secret, "server", message, sizeof message, proof)) return false;
    std::memcpy(own, proof, mac_bytes);
    return true;
  };
}

std::unique_ptr<TlsAcceptor> TlsAcceptor::open(const std::string &certificate,
                                               const std::string &key, std::string *why) {
  auto acceptor = std::make_unique<OpenSslAcceptor>();
  if (!acceptor->load(certificate, key, why)) return nullptr;
  return acceptor;
}

}  // namespace accel_rl::replay
