#include "crc32c.hpp"

#include <array>
#include <cstring>

namespace accel_rl::replay {

namespace {

constexpr uint32_t polynomial = 0x82F63B78;  // reflected

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// Tables for 8 bytes at a time.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? polynomial : 0);
    tables[0][byte] = rest;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 0xFF];
  return tables;
}

constexpr Tables tables = make_tables();

uint32_t by_tables(const unsigned char *bytes, size_t count, uint32_t crc) {
  for (; count >= 8; bytes += 8, count -= 8) {
    uint32_t mixed = 0;
    for (size_t k = 0; k < 4; ++k)
      mixed ^= tables[7 - k][(crc >> 8 * k ^ bytes[k]) & 0xFF] ^ tables[3 - k][bytes[4 + k]];
    crc = mixed;
  }
  for (; count > 0; ++bytes, --count) crc = crc >> 8 ^ tables[0][(crc ^ *bytes) & 0xFF];
  return crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("sse4.2"))) uint32_t by_instruction(const unsigned char *bytes, size_t count,
                                                          uint32_t crc) {
  uint64_t wide = crc;
  for (; count >= 8; bytes += 8, count -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; count > 0; ++bytes, --count) crc = __builtin_ia32_crc32qi(crc, *bytes);
  return crc;
}
#endif

}  // namespace

uint32_t crc32c(const void *bytes, size_t count, uint32_t before) {
  const auto *at = static_cast<const unsigned char *>(bytes);
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(at, count, ~before);
#endif
  return ~by_tables(at, count, ~before);
}

}  // namespace accel_rl::replay
