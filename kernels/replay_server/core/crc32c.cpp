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
// Advances a checksum over zero bytes. The operation is linear in each bit, hence the tables.
class Shift {
 public:
  explicit Shift(size_t bytes) {
    for (uint32_t bit = 0; bit < 32; ++bit) {
      uint32_t rest = uint32_t{1} << bit;
      for (size_t k = 0; k < bytes; ++k) rest = rest >> 8 ^ tables[0][rest & 0xFF];
      for (uint32_t byte = 0; byte < 256; ++byte)
        if (byte >> bit % 8 & 1) by_byte_[bit / 8][byte] ^= rest;
    }
  }
  uint32_t operator()(uint32_t crc) const {
    return by_byte_[0][crc & 0xFF] ^ by_byte_[1][crc >> 8 & 0xFF] ^ by_byte_[2][crc >> 16 & 0xFF] ^
           by_byte_[3][crc >> 24];
  }

 private:
  std::array<std::array<uint32_t, 256>, 4> by_byte_{};
};

// The instruction has a latency of three cycles and a throughput of one: three lanes run at a time,
// and are combined by advancing the first two over those behind them.
template <size_t lane>
__attribute__((target("sse4.2"))) uint32_t by_lanes(const unsigned char **bytes, size_t *count,
                                                    uint32_t crc) {
  static const Shift shift(lane);
  const unsigned char *at = *bytes;
  size_t left = *count;
  for (; left >= 3 * lane; at += 3 * lane, left -= 3 * lane) {
    uint64_t first = crc, second = 0, third = 0;
    for (size_t k = 0; k < lane; k += 8) {
      uint64_t words[3];
      std::memcpy(words, at + k, 8);
      std::memcpy(words + 1, at + lane + k, 8);
      std::memcpy(words + 2, at + 2 * lane + k, 8);
      first = __builtin_ia32_crc32di(first, words[0]);
      second = __builtin_ia32_crc32di(second, words[1]);
      third = __builtin_ia32_crc32di(third, words[2]);
    }
    crc = shift(static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
    crc = shift(crc) ^ static_cast<uint32_t>(third);
  }
  *bytes = at, *count = left;
  return crc;
}

__attribute__((target("sse4.2"))) uint32_t by_instruction(const unsigned char *bytes, size_t count,
                                                          uint32_t crc) {
  if (count >= 3 * 1024) crc = by_lanes<1024>(&bytes, &count, crc);
  if (count >= 3 * 128) crc = by_lanes<128>(&bytes, &count, crc);
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
