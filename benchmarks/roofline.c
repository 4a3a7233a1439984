// Ceilings of one core: arithmetic with and without SIMD, one dependent chain, and read bandwidth.

#include <stdint.h>

typedef float vector_t __attribute__((vector_size(64)));
enum { LANES = sizeof(vector_t) / sizeof(float), CHAINS = 12 };

// Each returns a value that depends on all its work, so that none of it can be left out.

// `steps` fused multiply-adds in each lane of CHAINS independent vectors.
float simd(int64_t steps, float factor) {
  vector_t sums[CHAINS] = {{0}};
  for (int64_t t = 0; t < steps; ++t)
    for (int k = 0; k < CHAINS; ++k) sums[k] = sums[k] * factor + factor;
  float total = 0;
  for (int k = 0; k < CHAINS; ++k)
    for (int lane = 0; lane < LANES; ++lane) total += sums[k][lane];
  return total;
}

// The same on single floats.
__attribute__((optimize("no-tree-vectorize", "no-tree-slp-vectorize"))) float scalar(int64_t steps,
                                                                                     float factor) {
  float sums[CHAINS] = {0};
  for (int64_t t = 0; t < steps; ++t)
    for (int k = 0; k < CHAINS; ++k) sums[k] = sums[k] * factor + factor;
  float total = 0;
  for (int k = 0; k < CHAINS; ++k) total += sums[k];
  return total;
}

// `steps` additions, each of which needs the one before.
float dependent(int64_t steps, float term) {
  float total = 0;
  for (int64_t t = 0; t < steps; ++t) total += term;
  return total;
}

// Reads `size` vectors, a multiple of 8, `passes` times.
float read_vectors(const vector_t *data, int64_t size, int64_t passes) {
  vector_t sums[8] = {{0}};
  for (int64_t p = 0; p < passes; ++p)
    for (int64_t i = 0; i < size; i += 8)
      for (int k = 0; k < 8; ++k) sums[k] += data[i + k];
  float total = 0;
  for (int k = 0; k < 8; ++k)
    for (int lane = 0; lane < LANES; ++lane) total += sums[k][lane];
  return total;
}
