// Proofs of a secret against values that Python's hmac gave.

#include "crypto.hpp"
#include "frames.hpp"

using namespace frames;

// hmac.digest(b"0123456789abcdef", b"accel_rl replay 1 client" + bytes(range(56)), "sha256")
static const uint8_t of_client[mac_bytes] = {
    0xa3, 0x88, 0x10, 0xc8, 0x1b, 0x23, 0x41, 0xe9, 0x41, 0xc2, 0xc9, 0xfe, 0xe5, 0x70, 0x81, 0x69,
    0x0d, 0x04, 0xbe, 0x37, 0x2b, 0x3b, 0xde, 0xe6, 0x16, 0x0b, 0x24, 0x42, 0xce, 0x68, 0x9a, 0x8d};
// hmac.digest(b"0123456789abcdef",
//             b"accel_rl replay 1 server" + bytes(range(56)) + (7).to_bytes(8, "little"), "sha256")
static const uint8_t of_server[mac_bytes] = {
    0x44, 0x86, 0x6f, 0x99, 0xc9, 0xc3, 0x58, 0x2f, 0xa6, 0x06, 0xbd, 0x3b, 0x54, 0x4f, 0x2a, 0xe3,
    0xed, 0xd2, 0x88, 0x8b, 0x18, 0xc5, 0xc1, 0x18, 0x08, 0x78, 0xf1, 0x2b, 0x9c, 0x50, 0xb9, 0xfd};

int main() {
  if (!crypto_built()) {
    std::string why;
    CHECK(!authenticator("0123456789abcdef"), "an authenticator without OpenSSL");
    CHECK(!TlsAcceptor::open("a", "b", &why) && !why.empty(), "TLS without OpenSSL");
    return finish();
  }
  const Authenticator check = authenticator("0123456789abcdef");
  uint8_t transcript[transcript_bytes], mac[mac_bytes], own[mac_bytes];
  for (size_t k = 0; k < transcript_bytes; ++k) transcript[k] = static_cast<uint8_t>(k);
  CHECK(check(transcript, of_client, 7, own), "the right proof");
  CHECK(std::memcmp(own, of_server, mac_bytes) == 0, "the server's own proof");
  for (size_t k = 0; k < mac_bytes; ++k) {
    std::memcpy(mac, of_client, mac_bytes);
    mac[k] ^= 1;
    CHECK(!check(transcript, mac, 7, own), "a wrong proof, byte %d", static_cast<int>(k));
  }
  transcript[0] ^= 1;
  CHECK(!check(transcript, of_client, 7, own), "the proof of another transcript");
  std::string why;
  CHECK(!TlsAcceptor::open("/nonexistent", "/nonexistent", &why), "no certificate");
  CHECK(why.find("certificate /nonexistent") == 0, "why: %s", why.c_str());
  return finish();
}
