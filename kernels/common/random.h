// The 32-bit generator that every driver shares: hash a key, then a linear congruential generator.

#ifndef ACCEL_RL_COMMON_RANDOM_H
#define ACCEL_RL_COMMON_RANDOM_H

#include "numerics.h"

enum { ARL_ORDER_STREAM = 1, ARL_ACTION_STREAM = 2 };

// The 32-bit finaliser of MurmurHash3 (Appleby), after a golden-ratio offset.
ARL_INLINE uint32_t arl_hash(uint32_t x) {
  x += 0x9E3779B9u;
  x = (x ^ x >> 16) * 0x85EBCA6Bu;
  x = (x ^ x >> 13) * 0xC2B2AE35u;
  return x ^ x >> 16;
}

// The state before the first draw of one stream; `dpu` is the global index.
ARL_INLINE uint32_t arl_stream(uint32_t seed, uint32_t pass, uint32_t dpu, uint32_t stream) {
  return arl_hash(arl_hash(arl_hash(arl_hash(seed) ^ pass) ^ dpu) ^ stream);
}

static const uint32_t arl_lcg_factor = 1664525u, arl_lcg_offset = 1013904223u;

// The next state, which is also the draw.
ARL_INLINE uint32_t arl_draw(uint32_t *state) {
  return *state = *state * arl_lcg_factor + arl_lcg_offset;
}

// Constants that advance a state by 1, 2, 4, ... draws: state * factor + offset. Each pair yields
// the next: factor * factor, and offset * factor + offset.
static const struct {
  uint32_t factor[32], offset[32];
} arl_jumps = {
    .factor =
        {
            0x0019660Du, 0x17385CA9u, 0x0979E791u, 0xEA890021u, 0x77520441u, 0x27B61881u,
            0x27C47101u, 0x8969E201u, 0x3E57C401u, 0x4ABF8801u, 0xCDBF1001u, 0x7C7E2001u,
            0x7CFC4001u, 0x09F88001u, 0x53F10001u, 0xA7E20001u, 0x4FC40001u, 0x9F880001u,
            0x3F100001u, 0x7E200001u, 0xFC400001u, 0xF8800001u, 0xF1000001u, 0xE2000001u,
            0xC4000001u, 0x88000001u, 0x10000001u, 0x20000001u, 0x40000001u, 0x80000001u,
            0x00000001u, 0x00000001u,
        },
    .offset =
        {
            0x3C6EF35Fu, 0x47502932u, 0xAAF95334u, 0xA3D95FA8u, 0x83C6B450u, 0x05ABBCA0u,
            0x74A4C940u, 0x7B1ED280u, 0x0292A500u, 0x5E794A00u, 0x62429400u, 0x59C52800u,
            0x088A5000u, 0x6514A000u, 0x1A294000u, 0x74528000u, 0xE8A50000u, 0xD14A0000u,
            0xA2940000u, 0x45280000u, 0x8A500000u, 0x14A00000u, 0x29400000u, 0x52800000u,
            0xA5000000u, 0x4A000000u, 0x94000000u, 0x28000000u, 0x50000000u, 0xA0000000u,
            0x40000000u, 0x80000000u,
        },
};

// The state after `draws` more draws.
ARL_INLINE uint32_t arl_jump(uint32_t state, uint32_t draws) {
  for (uint32_t bit = 0; draws; ++bit, draws >>= 1)
    if (draws & 1) state = state * arl_jumps.factor[bit] + arl_jumps.offset[bit];
  return state;
}

// An index in [0, n) for n up to 65,536.
ARL_INLINE uint32_t arl_below(uint32_t draw, uint32_t n) { return (draw >> 16) * n >> 16; }

// An index in [0, n) for any n: the high word of draw * n, from 16-bit halves.
ARL_INLINE uint32_t arl_below_large(uint32_t draw, uint32_t n) {
  uint32_t high = draw >> 16, low = draw & 0xFFFF, n_high = n >> 16, n_low = n & 0xFFFF;
  uint32_t middle = high * n_low + (low * n_low >> 16);
  uint32_t carry = (middle & 0xFFFF) + low * n_high;
  return high * n_high + (middle >> 16) + (carry >> 16);
}

#endif
