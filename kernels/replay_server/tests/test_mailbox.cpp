// The mailbox: versions, caps, a message in use while a newer one comes; and checksums.

#include <cstring>
#include <vector>

#include "check.h"
#include "crc32c.hpp"
#include "mailbox.hpp"

using namespace accel_rl::replay;

static Status publish(Mailbox *mailbox, const char *name, uint64_t version, const char *text) {
  return mailbox->publish(name, version, reinterpret_cast<const std::byte *>(text),
                          std::strlen(text));
}

static void test_mailbox() {
  Mailbox mailbox(10, 2);
  std::shared_ptr<const Message> message;
  CHECK(mailbox.fetch("a", 0, true, &message) == Status::none_newer, "nothing is there");
  CHECK(publish(&mailbox, "a", 0, "12345") == Status::ok, "the first");
  CHECK(mailbox.fetch("a", 0, false, &message) == Status::none_newer, "0 is not above 0");
  CHECK(mailbox.fetch("a", 0, true, &message) == Status::ok && message->bytes.size() == 5, "any");
  CHECK(publish(&mailbox, "a", 0, "1") == Status::bad_version, "the same version");
  CHECK(publish(&mailbox, "a", 7, "1234567890") == Status::ok, "in its predecessor's place");
  CHECK(message->version == 0 && message->bytes.size() == 5, "a message that is held changed");
  CHECK(publish(&mailbox, "b", 1, "1") == Status::limit, "too many bytes");
  CHECK(publish(&mailbox, "b", 1, "") == Status::ok, "no bytes");
  CHECK(publish(&mailbox, "c", 1, "") == Status::limit, "too many names");
  CHECK(publish(&mailbox, "", 1, "") == Status::bad_name, "no name");
  CHECK(mailbox.bytes() == 10 && mailbox.messages().size() == 2, "bytes");
}

// Bit by bit, as it is defined.
static uint32_t by_bits(const unsigned char *bytes, size_t count) {
  uint32_t rest = 0xFFFFFFFF;
  for (size_t k = 0; k < count; ++k) {
    rest ^= bytes[k];
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? 0x82F63B78 : 0);
  }
  return ~rest;
}

// Of lengths about those from which on several lanes are computed at a time.
static void test_lanes() {
  std::vector<unsigned char> bytes(7000);
  uint32_t state = 1;
  for (unsigned char &each : bytes) {
    state = state * 1664525 + 1013904223;
    each = static_cast<unsigned char>(state >> 24);
  }
  for (const size_t count : {1, 7, 8, 383, 384, 385, 767, 768, 1448, 3071, 3072, 3457, 6999})
    for (const size_t from : {size_t{0}, size_t{1}})
      CHECK(crc32c(bytes.data() + from, count) == by_bits(bytes.data() + from, count), "%d from %d",
            static_cast<int>(count), static_cast<int>(from));
}

static void test_checksum() {
  CHECK(crc32c("123456789", 9) == 0xE3069283, "%08x", crc32c("123456789", 9));
  CHECK(crc32c("", 0) == 0, "of nothing");
  const unsigned char zeros[32] = {0};
  CHECK(crc32c(zeros, 32) == 0x8A9136AA, "%08x", crc32c(zeros, 32));
  const char *text = "a longer text, cut at every place";
  for (size_t cut = 0; cut <= std::strlen(text); ++cut)
    CHECK(crc32c(text + cut, std::strlen(text) - cut, crc32c(text, cut)) ==
              crc32c(text, std::strlen(text)),
          "cut at %zu", cut);
}

int main() {
  test_lanes();
  test_mailbox();
  test_checksum();
  return finish();
}
