// A frame as slices, and which of them have come.

#ifndef ACCEL_RL_REPLAY_DATAGRAM_FRAGMENTS_HPP
#define ACCEL_RL_REPLAY_DATAGRAM_FRAGMENTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "../protocol/frame.hpp"

namespace accel_rl::replay {

// Bounds on slices of a frame that takes more than one datagram.
constexpr uint32_t least_slice = 512, most_slice = 32768;
// Where the path's MTU is unknown: with the headers of UDP and IPv6 it fits the 1,500 bytes of
// Ethernet.
constexpr uint32_t usual_slice = 1408;
// The slices that datagrams of at most `datagram_bytes` carry.
constexpr uint32_t largest_slice(size_t datagram_bytes) {
  return static_cast<uint32_t>(
      std::clamp<size_t>(datagram_bytes, header_bytes + least_slice, header_bytes + most_slice) -
      header_bytes);
}
constexpr size_t most_datagram = header_bytes + most_slice;

// How the bytes behind a frame's header are cut: equal slices, the last may be shorter.
struct Fragments {
  uint32_t length = 0;  // of the frame
  uint32_t slice = 0;
  uint16_t count = 0;

  // Cut a frame to be sent; false if it takes more than 65,535 slices.
  static bool cut(uint32_t length, uint32_t slice, Fragments *out);
  // Infer the cut from one datagram with `bytes` behind the header; false if no cut yields it.
  static bool infer(const Header &header, size_t bytes, Fragments *out);

  size_t offset(uint32_t fragment) const { return header_bytes + size_t{fragment} * slice; }
  size_t bytes(uint32_t fragment) const {
    return fragment + 1u < count ? slice : length - offset(fragment);
  }
  // The first that may be sent without credit.
  uint32_t window() const;
  // That may be on their way with credit, to whoever has room for so many bytes.
  uint32_t window(size_t bytes) const;
  bool operator==(const Fragments &other) const {
    return length == other.length && slice == other.slice && count == other.count;
  }
};

// Which fragments of a frame have come.
class Received {
 public:
  static constexpr uint32_t most_beyond = 128;  // that are remembered beyond the first missing one

  void begin(uint32_t count) { count_ = count, next_ = 0, beyond_[0] = beyond_[1] = 0; }

  enum class Take : uint8_t { fresh, duplicate, outside };
  Take take(uint32_t fragment);

  uint32_t next() const { return next_; }  // the first that has not come
  bool complete() const { return next_ == count_; }
  bool any_beyond() const { return (beyond_[0] | beyond_[1]) != 0; }
  // Bit k of word w: number next() + 1 + 64 * w + k has come.
  uint64_t beyond(int word) const { return beyond_[word]; }

 private:
  bool step();

  uint32_t count_ = 0, next_ = 0;
  uint64_t beyond_[2] = {0, 0};
};

}  // namespace accel_rl::replay

#endif
