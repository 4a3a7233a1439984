// Bytes that lie in several places, and any piece of them.

#ifndef ACCEL_RL_REPLAY_DATAGRAM_SCATTER_HPP
#define ACCEL_RL_REPLAY_DATAGRAM_SCATTER_HPP

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../client/link.hpp"

namespace accel_rl::replay {

class Scatter {
 public:
  // The first `skip` bytes, which the first part has, are left out.
  void assign(const Part *parts, size_t count, size_t skip) {
    parts_.clear(), ends_.clear();
    size_t end = 0;
    for (size_t k = 0; k < count; ++k) {
      const size_t left_out = k == 0 ? skip : 0;
      if (parts[k].count == left_out) continue;
      parts_.push_back({parts[k].bytes + left_out, parts[k].count - left_out});
      ends_.push_back(end += parts[k].count - left_out);
    }
  }
  size_t size() const { return ends_.empty() ? 0 : ends_.back(); }

  // The parts of bytes [begin, begin + count), which must be there; good until the next call.
  const std::vector<Part> &piece(size_t begin, size_t count) {
    piece_.clear();
    const auto found = std::upper_bound(ends_.begin(), ends_.end(), begin);
    for (auto k = static_cast<size_t>(found - ends_.begin()); count > 0; ++k) {
      const size_t at = begin - (ends_[k] - parts_[k].count);
      const size_t taken = std::min(count, parts_[k].count - at);
      piece_.push_back({parts_[k].bytes + at, taken});
      begin += taken, count -= taken;
    }
    return piece_;
  }

 private:
  std::vector<Part> parts_, piece_;
  std::vector<size_t> ends_;  // of each part among all bytes
};

}  // namespace accel_rl::replay

#endif
