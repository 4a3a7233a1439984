// XLA's threads flush subnormal floats to zero. The semantics keep them, as NumPy and DPUs do.

#ifndef ACCEL_RL_FFI_FLOAT_MODE_H
#define ACCEL_RL_FFI_FLOAT_MODE_H

#include <stdint.h>

typedef uint64_t arl_float_mode;

#if defined(__x86_64__)

#include <xmmintrin.h>

enum { ARL_FLUSH_RESULTS = 0x8000, ARL_FLUSH_OPERANDS = 0x0040 };

// Keep subnormals from now on; returns the mode to restore.
static inline arl_float_mode arl_keep_subnormals(void) {
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode & ~(unsigned)(ARL_FLUSH_RESULTS | ARL_FLUSH_OPERANDS));
  return mode;
}

static inline void arl_restore_float_mode(arl_float_mode mode) { _mm_setcsr((unsigned)mode); }

#elif defined(__aarch64__)

static inline arl_float_mode arl_keep_subnormals(void) {
  const uint64_t flush = UINT64_C(1) << 24;  // FPCR.FZ
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  __asm__ volatile("msr fpcr, %0" : : "r"(mode & ~flush));
  return mode;
}

static inline void arl_restore_float_mode(arl_float_mode mode) {
  __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}

#else

static inline arl_float_mode arl_keep_subnormals(void) { return 0; }
static inline void arl_restore_float_mode(arl_float_mode mode) { (void)mode; }

#endif

#endif
