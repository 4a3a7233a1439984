// The arithmetic of table entries, in the forms of docs/tabular-semantics.md.
//
// ARL_NUMERICS chooses ARL_FP32, ARL_INT32_SCALED or ARL_INT32_POW2. ARL_VECTOR_BYTES chooses what
// a value is: 0 for one entry, otherwise a vector of entries, one for each of several replicas, to
// which every operation applies lane by lane. FP32 must be compiled with -ffp-contract=off.

#ifndef ACCEL_RL_COMMON_NUMERICS_H
#define ACCEL_RL_COMMON_NUMERICS_H

#include <stdint.h>

#define ARL_FP32 1
#define ARL_INT32_SCALED 2
#define ARL_INT32_POW2 3

#ifndef ARL_VECTOR_BYTES
#define ARL_VECTOR_BYTES 0
#endif

// Whether INT32 arithmetic goes through 64 bits: twice as fast where registers have them, and the
// same values. Neither DPUs nor vectors do.
#ifndef ARL_WIDE
#define ARL_WIDE (UINTPTR_MAX > UINT32_MAX && ARL_VECTOR_BYTES == 0)
#endif

#ifndef ARL_INLINE
#define ARL_INLINE static inline __attribute__((always_inline))
#endif

#if ARL_NUMERICS == ARL_FP32
typedef float arl_entry;
#elif ARL_NUMERICS == ARL_INT32_SCALED || ARL_NUMERICS == ARL_INT32_POW2
typedef int32_t arl_entry;
#else
#error "define ARL_NUMERICS as ARL_FP32, ARL_INT32_SCALED or ARL_INT32_POW2"
#endif

#if ARL_VECTOR_BYTES == 0

typedef arl_entry arl_value;
typedef int32_t arl_mask;
typedef uint32_t arl_bits;

ARL_INLINE arl_value arl_splat(arl_entry x) { return x; }
ARL_INLINE arl_value arl_select(arl_mask mask, arl_value x, arl_value y) { return mask ? x : y; }

#else

typedef arl_entry arl_value __attribute__((vector_size(ARL_VECTOR_BYTES)));
typedef int32_t arl_mask __attribute__((vector_size(ARL_VECTOR_BYTES)));
typedef uint32_t arl_bits __attribute__((vector_size(ARL_VECTOR_BYTES)));

ARL_INLINE arl_value arl_splat(arl_entry x) { return x - (arl_value){0}; }
// C has no ?: on vectors. Of the loop gcc makes a maximum where it can, but only for floats.
ARL_INLINE arl_value arl_select(arl_mask mask, arl_value x, arl_value y) {
#if ARL_NUMERICS == ARL_FP32
  arl_value chosen;
  for (unsigned k = 0; k < ARL_VECTOR_BYTES / sizeof(arl_entry); ++k)
    chosen[k] = mask[k] ? x[k] : y[k];
  return chosen;
#else
  return (mask & x) | (~mask & y);
#endif
}

#endif

// c * x modulo 2^32. DPUs have no multiplier: there, a constant c below 2^30 becomes shifts, sums
// and differences, one for each digit 1 or -1 of its non-adjacent form.
ARL_INLINE uint32_t arl_times(uint32_t c, uint32_t x) {
#ifdef ARL_SHIFT_AND_ADD
  if (__builtin_constant_p(c)) {
    const uint32_t plus = (3 * c & ~c) >> 1, minus = (c & ~(3 * c)) >> 1;
    uint32_t product = 0;
// The empty assembly keeps compilers from making one product of it again.
#define ARL_DIGIT(k)                                       \
  if ((plus | minus) >> ((k) + 1)) product <<= 1;          \
  if ((plus | minus) >> (k) & 1) {                         \
    product = plus >> (k) & 1 ? product + x : product - x; \
    __asm__("" : "+r"(product));                           \
  }
    // clang-format off: statements without semicolons
    ARL_DIGIT(30) ARL_DIGIT(29) ARL_DIGIT(28) ARL_DIGIT(27) ARL_DIGIT(26) ARL_DIGIT(25)
    ARL_DIGIT(24) ARL_DIGIT(23) ARL_DIGIT(22) ARL_DIGIT(21) ARL_DIGIT(20) ARL_DIGIT(19)
    ARL_DIGIT(18) ARL_DIGIT(17) ARL_DIGIT(16)
    ARL_DIGIT(15) ARL_DIGIT(14) ARL_DIGIT(13) ARL_DIGIT(12) ARL_DIGIT(11) ARL_DIGIT(10)
    ARL_DIGIT(9) ARL_DIGIT(8) ARL_DIGIT(7) ARL_DIGIT(6) ARL_DIGIT(5) ARL_DIGIT(4)
    ARL_DIGIT(3) ARL_DIGIT(2) ARL_DIGIT(1) ARL_DIGIT(0)
#undef ARL_DIGIT
    return product;
    // clang-format on
  }
#endif
  return c * x;
}

#if ARL_NUMERICS == ARL_FP32

ARL_INLINE arl_value arl_add(arl_value x, arl_value y) { return x + y; }
ARL_INLINE arl_value arl_subtract(arl_value x, arl_value y) { return x - y; }
ARL_INLINE arl_value arl_multiply(arl_value c, arl_value x) { return c * x; }

// The mean of `count` values that lie `stride` apart, summed from the first to the last.
ARL_INLINE arl_value arl_mean(const arl_value *values, uint32_t count, uint32_t stride) {
  arl_value total = values[0];
  for (uint32_t k = 1; k < count; ++k) total += values[k * stride];
  return total * (1.0f / (float)count);
}

#else

#if ARL_VECTOR_BYTES == 0

// The largest x for which c * x does not exceed `limit`, or a smaller one; c is at most `most`.
ARL_INLINE uint32_t arl_most(uint32_t limit, arl_value c, uint32_t most) {
  return limit / (__builtin_constant_p(c) && c > 0 ? (uint32_t)c : most);
}

#endif

#if ARL_NUMERICS == ARL_INT32_SCALED

#ifndef ARL_SCALE
#define ARL_SCALE 10000
#endif
_Static_assert(ARL_SCALE < 1 << 15, "arl_times wants coefficients below 2^15");

// Values that the factory's bounds allow do not overflow; others wrap, as in JAX. Sums are
// unsigned: signed overflow is undefined, and the sanitisers stop at it.
ARL_INLINE arl_value arl_add(arl_value x, arl_value y) {
  return (arl_value)((arl_bits)x + (arl_bits)y);
}

ARL_INLINE arl_value arl_subtract(arl_value x, arl_value y) {
  return (arl_value)((arl_bits)x - (arl_bits)y);
}

// c * x / ARL_SCALE toward zero, for 0 <= c <= ARL_SCALE: 32 bits hold it, but not always c * x.
ARL_INLINE arl_value arl_multiply(arl_value c, arl_value x) {
#if ARL_WIDE
  return (arl_value)((int64_t)c * x / ARL_SCALE);
#else
#if ARL_VECTOR_BYTES == 0
  const uint32_t size = x < 0 ? 0 - (uint32_t)x : (uint32_t)x;
  // With UINT32_MAX as the limit, gcc computes a 64-bit product and tests it for overflow.
  if (size <= arl_most(UINT32_MAX - 1, c, ARL_SCALE)) {
    const uint32_t product = arl_times((uint32_t)c, size) / ARL_SCALE;
    return (arl_value)(x < 0 ? 0 - product : product);
  }
#endif
  // Exact: `whole * c` has no fraction, and the remainder has the sign of x, so that truncating its
  // part truncates the whole.
  arl_value whole = x / ARL_SCALE;
  return whole * c + (x - whole * ARL_SCALE) * c / ARL_SCALE;
#endif
}

// Term that a mean adds to its remainder before the last division: 0, it rounds toward zero.
ARL_INLINE arl_value arl_half(arl_value rest, arl_entry count) {
  (void)count;
  return rest - rest;
}

#else

ARL_INLINE arl_value arl_negate(arl_value x) { return (arl_value)(0 - (arl_bits)x); }

// The sum, limited to +-INT32_MAX.
ARL_INLINE arl_value arl_add(arl_value x, arl_value y) {
#if ARL_VECTOR_BYTES == 0
  int32_t total;
  if (__builtin_expect(__builtin_add_overflow(x, y, &total), 0))
    return x < 0 ? -INT32_MAX : INT32_MAX;
  return __builtin_expect(total < -INT32_MAX, 0) ? -INT32_MAX : total;
#else
  arl_value total = (arl_value)((arl_bits)x + (arl_bits)y);  // wraps; a signed sum must not
  arl_value limit = arl_select(x < 0, arl_splat(-INT32_MAX), arl_splat(INT32_MAX));
  arl_value least = arl_select(total < -INT32_MAX, arl_splat(-INT32_MAX), total);
  return arl_select(((x ^ total) & (y ^ total)) < 0, limit, least);
#endif
}

ARL_INLINE arl_value arl_subtract(arl_value x, arl_value y) { return arl_add(x, arl_negate(y)); }

// c * x / 256 rounded half away from zero, for 0 <= c <= 256.
ARL_INLINE arl_value arl_multiply(arl_value c, arl_value x) {
#if ARL_WIDE
  int64_t product = (int64_t)c * x;
  // The shift rounds down. -1 for negative products turns a half up into a half away from zero.
  return (arl_value)((product + 128 + (product >> 63)) >> 8);
#else
#if ARL_VECTOR_BYTES == 0
  const uint32_t most = arl_most(INT32_MAX - 128, c, 256);
  if ((uint32_t)x + most <= 2 * most) {
    const int32_t product = (int32_t)arl_times((uint32_t)c, (uint32_t)x);
    return (product + 128 + (product >> 31)) >> 8;
  }
#endif
  arl_value magnitude = arl_select(x < 0, arl_negate(x), x);
  arl_value low = (magnitude & 255) * c + 128;
  arl_value product = (magnitude >> 8) * c + (low >> 8);
  return arl_select(x < 0, arl_negate(product), product);
#endif
}

// Term that a mean adds to its remainder before the last division, to round half away from zero.
ARL_INLINE arl_value arl_half(arl_value rest, arl_entry count) {
  return arl_select(rest < 0, arl_splat(-(count / 2)), arl_splat(count / 2));
}

#endif

// The mean of `count` values that lie `stride` apart; their sum could overflow.
ARL_INLINE arl_value arl_mean(const arl_value *values, uint32_t count, uint32_t stride) {
  const arl_entry n = (arl_entry)count;
  arl_value whole = arl_splat(0), rest = arl_splat(0);
  for (uint32_t k = 0; k < count; ++k) {
    arl_value part = values[k * stride] / n;
    whole += part;
    rest += values[k * stride] - part * n;
  }
  return whole + (rest + arl_half(rest, n)) / n;
}

#endif

#endif
