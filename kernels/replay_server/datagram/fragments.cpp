#include "fragments.hpp"

#include <algorithm>

namespace accel_rl::replay {

namespace {

constexpr uint32_t window_bytes = 128u << 10;  // fits the buffer that a socket has at first
constexpr uint32_t least_window = 4, most_window = 64;
static_assert(most_window <= Received::most_beyond, "what is on its way must be remembered");

}  // namespace

bool Fragments::cut(uint32_t length, uint32_t slice, Fragments *out) {
  const uint32_t body = length - header_bytes;
  const uint32_t count = (body + slice - 1) / slice;
  if (count > UINT16_MAX) return false;
  out->length = length;
  out->slice = count == 1 ? body : slice;
  out->count = static_cast<uint16_t>(count);
  return true;
}

bool Fragments::infer(const Header &header, size_t bytes, Fragments *out) {
  const size_t body = header.length - header_bytes, count = header.fragments;
  if (header.fragment >= count || bytes == 0 || bytes > most_slice) return false;
  size_t slice = bytes;
  if (count == 1) {
    if (bytes != body) return false;
  } else {
    if (header.fragment + 1u == count) {
      if (bytes >= body || (body - bytes) % (count - 1) != 0) return false;
      slice = (body - bytes) / (count - 1);
    }
    if (slice < least_slice || slice > most_slice || bytes > slice) return false;
    if ((count - 1) * slice >= body || count * slice < body) return false;
  }
  out->length = header.length;
  out->slice = static_cast<uint32_t>(slice);
  out->count = static_cast<uint16_t>(count);
  return true;
}

uint32_t Fragments::window() const {
  return std::clamp(window_bytes / slice, least_window, most_window);
}

uint32_t Fragments::window(size_t bytes) const {
  return std::clamp(static_cast<uint32_t>(std::min<size_t>(bytes, UINT32_MAX) / slice), window(),
                    Received::most_beyond);
}

Received::Take Received::take(uint32_t fragment) {
  if (fragment < next_) return Take::duplicate;
  if (fragment > next_) {
    const uint32_t past = fragment - next_ - 1;
    if (past >= most_beyond) return Take::outside;
    const uint64_t bit = uint64_t{1} << past % 64;
    if (beyond_[past / 64] & bit) return Take::duplicate;
    beyond_[past / 64] |= bit;
    return Take::fresh;
  }
  while (step()) {
  }
  return Take::fresh;
}

// The first missing one has come. Whether the one behind it had come already.
bool Received::step() {
  const bool more = beyond_[0] & 1;
  beyond_[0] = beyond_[0] >> 1 | beyond_[1] << 63;
  beyond_[1] >>= 1;
  ++next_;
  return more;
}

}  // namespace accel_rl::replay
