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

// Factor and offset that advance a state by 1, 2, 4, ... draws.
typedef struct {
  uint32_t factor[32], offset[32];
} arl_jumps;

ARL_INLINE void arl_make_jumps(arl_jumps *jumps) {
  uint32_t factor = arl_lcg_factor, offset = arl_lcg_offset;
  for (int bit = 0; bit < 32; ++bit) {
    jumps->factor[bit] = factor;
    jumps->offset[bit] = offset;
    offset += offset * factor;
    factor *= factor;
  }
}

// The state after `draws` more draws.
ARL_INLINE uint32_t arl_jump(const arl_jumps *jumps, uint32_t state, uint32_t draws) {
  for (uint32_t bit = 0; draws; ++bit, draws >>= 1)
    if (draws & 1) state = state * jumps->factor[bit] + jumps->offset[bit];
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
