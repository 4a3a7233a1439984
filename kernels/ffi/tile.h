// Tables of replicas side by side: between each replica's own table and tiles [E][groups] of
// vectors, whose lanes are replicas.

#ifndef ACCEL_RL_FFI_TILE_H
#define ACCEL_RL_FFI_TILE_H

#include <string.h>

#include "numerics.h"

enum { ARL_LANES = sizeof(arl_value) / sizeof(arl_entry) };

#if ARL_VECTOR_BYTES > 0

// Entries of two vectors in turn: of their first halves, and of their second ones.
#if ARL_VECTOR_BYTES == 64
#define ARL_FIRST_HALVES 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ARL_SECOND_HALVES 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif ARL_VECTOR_BYTES == 32
#define ARL_FIRST_HALVES 0, 8, 1, 9, 2, 10, 3, 11
#define ARL_SECOND_HALVES 4, 12, 5, 13, 6, 14, 7, 15
#else
#define ARL_FIRST_HALVES 0, 4, 1, 5
#define ARL_SECOND_HALVES 2, 6, 3, 7
#endif
#ifdef __clang__
#define ARL_INTERLEAVE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define ARL_INTERLEAVE(x, y, ...) __builtin_shuffle(x, y, (arl_mask){__VA_ARGS__})
#endif

// Transpose a square of entries. Of an entry's place, the bits of its row and then of its column,
// a round moves the first to the end, so log2(ARL_LANES) rounds exchange row and column.
ARL_INLINE void arl_transpose(arl_value square[ARL_LANES]) {
  for (uint32_t round = 1; round < ARL_LANES; round *= 2) {
    arl_value next[ARL_LANES];
    for (uint32_t k = 0; k < ARL_LANES / 2; ++k) {
      const arl_value x = square[k], y = square[k + ARL_LANES / 2];
      next[2 * k] = ARL_INTERLEAVE(x, y, ARL_FIRST_HALVES);
      next[2 * k + 1] = ARL_INTERLEAVE(x, y, ARL_SECOND_HALVES);
    }
    memcpy(square, next, sizeof next);
  }
}

// Entries that a square has from entry `e` on. A caller copies a constant number where it is full.
ARL_INLINE size_t arl_square_bytes(int64_t e, int64_t entries) {
  const int64_t left = entries - e;
  return sizeof(arl_entry) * (size_t)(left < ARL_LANES ? left : ARL_LANES);
}

// Gather the tables of a tile's `real` replicas, `stride` entries apart; lanes beyond them repeat
// the last one's, and are never stored.
static void arl_load_tile(const arl_entry *tables, int64_t stride, int64_t real, int64_t entries,
                          size_t groups, arl_value *tile) {
  for (size_t g = 0; g < groups; ++g)
    for (int64_t e = 0; e < entries; e += ARL_LANES) {
      const size_t bytes = arl_square_bytes(e, entries);
      arl_value square[ARL_LANES] = {{0}};
      for (int64_t k = 0; k < ARL_LANES; ++k) {
        const int64_t lane = (int64_t)g * ARL_LANES + k;
        const arl_entry *from = tables + (lane < real ? lane : real - 1) * stride + e;
        if (bytes == sizeof *square)
          memcpy(square + k, from, sizeof *square);
        else
          memcpy(square + k, from, bytes);
      }
      arl_transpose(square);
      for (int64_t k = 0; k < ARL_LANES && e + k < entries; ++k)
        tile[(size_t)(e + k) * groups + g] = square[k];
    }
}

// The inverse.
static void arl_store_tile(const arl_value *tile, int64_t real, int64_t entries, size_t groups,
                           arl_entry *tables, int64_t stride) {
  for (size_t g = 0; g < groups; ++g)
    for (int64_t e = 0; e < entries; e += ARL_LANES) {
      const size_t bytes = arl_square_bytes(e, entries);
      arl_value square[ARL_LANES] = {{0}};
      for (int64_t k = 0; k < ARL_LANES && e + k < entries; ++k)
        square[k] = tile[(size_t)(e + k) * groups + g];
      arl_transpose(square);
      for (int64_t k = 0; k < ARL_LANES && (int64_t)g * ARL_LANES + k < real; ++k) {
        arl_entry *to = tables + ((int64_t)g * ARL_LANES + k) * stride + e;
        if (bytes == sizeof *square)
          memcpy(to, square + k, sizeof *square);
        else
          memcpy(to, square + k, bytes);
      }
    }
}

#endif

#endif
