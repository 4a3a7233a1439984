// SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012): a keyed hash of few bytes.

#ifndef ACCEL_RL_REPLAY_SIPHASH_HPP
#define ACCEL_RL_REPLAY_SIPHASH_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace accel_rl::replay {

using SipKey = std::array<uint64_t, 2>;

inline uint64_t siphash(const SipKey &key, const uint8_t *bytes, size_t count) {
  uint64_t a = key[0] ^ UINT64_C(0x736F6D6570736575), b = key[1] ^ UINT64_C(0x646F72616E646F6D);
  uint64_t c = key[0] ^ UINT64_C(0x6C7967656E657261), d = key[1] ^ UINT64_C(0x7465646279746573);
  const auto turned = [](uint64_t x, int by) { return x << by | x >> (64 - by); };
  const auto mix = [&](int times) {
    for (int k = 0; k < times; ++k) {
      a += b, b = turned(b, 13) ^ a, a = turned(a, 32);
      c += d, d = turned(d, 16) ^ c;
      a += d, d = turned(d, 21) ^ a;
      c += b, b = turned(b, 17) ^ c, c = turned(c, 32);
    }
  };
  const auto take = [&](uint64_t word) {
    d ^= word;
    mix(2);
    a ^= word;
  };
  size_t at = 0;
  for (; at + 8 <= count; at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + at, 8);
    take(word);
  }
  uint64_t last = uint64_t{count} << 56;
  for (size_t k = at; k < count; ++k) last |= uint64_t{bytes[k]} << (8 * (k - at));
  take(last);
  c ^= 0xFF;
  mix(4);
  return a ^ b ^ c ^ d;
}

}  // namespace accel_rl::replay

#endif
