#include "merge.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace accel_rl::upmem {

namespace {

constexpr uint32_t one = 32768;  // of damped weights

using Damped = std::array<uint32_t, 256>;  // weights by visits; more count as 255

Damped damped_weights(float alpha) {
  const uint32_t keep = one - static_cast<uint32_t>(std::nearbyint(alpha * one));
  Damped weights;
  uint32_t left = one;
  for (uint32_t &weight : weights) {
    weight = one - left;
    left = (left * keep + one / 2) >> 15;
  }
  return weights;
}

uint32_t weight_of(Merge how, uint32_t visits, const Damped &damped) {
  switch (how) {
    case Merge::visits:
      return visits;
    case Merge::mean:
      return 1;
    case Merge::visited:
      return visits > 0;
    default:
      return damped[std::min<size_t>(visits, damped.size() - 1)];
  }
}

// Through one tree of adjacent pairs, padded with zeros to a power of two.
float pairwise_sum(std::vector<float> &terms) {
  for (size_t count = terms.size(); count > 1; count /= 2)
    for (size_t k = 0; k < count / 2; ++k) terms[k] = terms[2 * k] + terms[2 * k + 1];
  return terms[0];
}

size_t power_of_two_from(size_t count) {
  size_t power = 1;
  while (power < count) power *= 2;
  return power;
}

// The quotient rounded to the nearest, halves away from zero.
int64_t rounded(__int128 numerator, uint64_t divisor) {
  const __int128 size = numerator < 0 ? -numerator : numerator;
  const int64_t quotient = static_cast<int64_t>((2 * size + divisor) / (2 * divisor));
  return numerator < 0 ? -quotient : quotient;
}

}  // namespace

void merge(Merge how, Numerics numerics, size_t chunks, size_t entries, const void *tables,
           const void *base, const uint32_t *visits, float alpha, void *merged) {
  const Damped damped = damped_weights(alpha);
  std::vector<float> terms(power_of_two_from(chunks));
  for (size_t e = 0; e < entries; ++e) {
    uint64_t total = 0;
    __int128 exact = 0;
    const auto *floats = static_cast<const float *>(tables) + e;
    const auto *integers = static_cast<const int32_t *>(tables) + e;
    const bool plain = how == Merge::mean;
    std::fill(terms.begin(), terms.end(), 0.0f);
    for (size_t d = 0; d < chunks; ++d) {
      const uint32_t weight = weight_of(how, visits[d * entries + e], damped);
      total += weight;
      if (numerics == Numerics::fp32) {
        const float start = plain ? 0 : static_cast<const float *>(base)[e];
        terms[d] = static_cast<float>(weight) * (floats[d * entries] - start);
      } else {
        const int64_t start = plain ? 0 : static_cast<const int32_t *>(base)[e];
        exact += static_cast<__int128>(weight) * (integers[d * entries] - start);
      }
    }
    if (numerics == Numerics::fp32) {
      const float start = plain ? 0 : static_cast<const float *>(base)[e];
      const float share = 1.0f / static_cast<float>(static_cast<uint32_t>(total));
      static_cast<float *>(merged)[e] = total ? start + pairwise_sum(terms) * share : start;
    } else {
      const int64_t start = plain ? 0 : static_cast<const int32_t *>(base)[e];
      static_cast<int32_t *>(merged)[e] =
          static_cast<int32_t>(total ? start + rounded(exact, total) : start);
    }
  }
}

}  // namespace accel_rl::upmem
