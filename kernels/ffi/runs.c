#include "runs.h"

// ARL_X86_LEVELS is defined where passes are compiled for AVX2 and AVX-512 too.

#define DECLARE(LEVEL)                                                   \
  arl_run arl_run_1_0_##LEVEL, arl_run_2_0_##LEVEL, arl_run_3_0_##LEVEL; \
  arl_run arl_run_1_1_##LEVEL, arl_run_2_1_##LEVEL, arl_run_3_1_##LEVEL; \
  arl_owned_run arl_owned_1_##LEVEL, arl_owned_2_##LEVEL, arl_owned_3_##LEVEL;
#define FORMS(LEVEL)                              \
  {                                               \
      {arl_run_1_0_##LEVEL, arl_run_1_1_##LEVEL}, \
      {arl_run_2_0_##LEVEL, arl_run_2_1_##LEVEL}, \
      {arl_run_3_0_##LEVEL, arl_run_3_1_##LEVEL}, \
  }
#define OWNED(LEVEL) {arl_owned_1_##LEVEL, arl_owned_2_##LEVEL, arl_owned_3_##LEVEL}

DECLARE(base)
#ifdef ARL_X86_LEVELS
DECLARE(avx2)
DECLARE(avx512)
#endif

// Functions by level, numerics and form: entries or vectors.
static arl_run *const forms[ARL_LEVELS][3][2] = {
    FORMS(base),
#ifdef ARL_X86_LEVELS
    FORMS(avx2),
    FORMS(avx512),
#endif
};

// The same by level and numerics.
static arl_owned_run *const owned_forms[ARL_LEVELS][3] = {
    OWNED(base),
#ifdef ARL_X86_LEVELS
    OWNED(avx2),
    OWNED(avx512),
#endif
};

arl_level arl_best_level(void) {
#ifdef ARL_X86_LEVELS
  __builtin_cpu_init();
  if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt") &&
        __builtin_cpu_supports("movbe") && __builtin_cpu_supports("popcnt")))
    return ARL_BASE;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return ARL_AVX512;
  return ARL_AVX2;
#else
  return ARL_BASE;
#endif
}

const char *arl_level_name(arl_level level) {
  static const char *const names[ARL_LEVELS] = {"base", "avx2", "avx512"};
  return names[level];
}

arl_run *arl_choose(int64_t numerics, int64_t replicas, arl_level level) {
  return forms[level][numerics - 1][replicas > 1];
}

arl_owned_run *arl_choose_owned(int64_t numerics, int64_t lanes, arl_level level) {
  static const int64_t widths[ARL_LEVELS] = {4, 8, 16};
  while (level > ARL_BASE && lanes < widths[level]) --level;
  return owned_forms[level][numerics - 1];
}
