// Bytes from one process to another through memory that both have: a ring with one writer and one
// reader. Neither trusts the other: each keeps its own position to itself, and what it reads of the
// other's is checked before it is used, so that whatever stands there no byte outside the ring is
// touched.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_RING_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_RING_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace accel_rl::replay {

// Positions count all bytes ever written or read. Each is stored by one side only, and has a cache
// line of its own, so that the sides do not share one.
struct RingPositions {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "the other side has no lock of ours");

// One side's view of a ring, of a power of two of bytes.
class Ring {
 public:
  Ring() = default;
  Ring(RingPositions *positions, uint8_t *bytes, size_t size)
      : positions_(positions), bytes_(bytes), size_(size) {}

 protected:
  // Copy in quarters, so that the other side works on one while this side copies the next.
  size_t step() const { return size_ / 4; }
  size_t offset() const { return static_cast<size_t>(own_) & (size_ - 1); }

  RingPositions *positions_ = nullptr;
  uint8_t *bytes_ = nullptr;
  size_t size_ = 0;
  uint64_t own_ = 0;  // our position
  bool broken_ = false;
};

// Positions are stored sequentially consistent, as the wake-ups of shared_layout.hpp need; release
// would do for the bytes alone. Each side keeps its own position to itself: the other side could
// change the shared one.
class RingWriter : public Ring {
 public:
  using Ring::Ring;

  // True once the reader stored a position that it cannot have.
  bool broken() const { return broken_; }
  size_t room() {
    // A position that the reader cannot have makes the difference wrap, above the size.
    const uint64_t held = own_ - positions_->read.load(std::memory_order_seq_cst);
    broken_ = broken_ || held > size_;
    return broken_ ? 0 : size_ - static_cast<size_t>(held);
  }
  // Returns the bytes written, as far as there is room.
  size_t write(const uint8_t *from, size_t count) {
    size_t done = 0;
    while (done < count) {
      const size_t part = std::min({count - done, room(), step()});
      if (part == 0) break;
      const size_t at = offset(), first = std::min(part, size_ - at);
      std::memcpy(bytes_ + at, from + done, first);
      if (part > first) std::memcpy(bytes_, from + done + first, part - first);
      own_ += part, done += part;
      positions_->written.store(own_, std::memory_order_seq_cst);
    }
    return done;
  }
};

class RingReader : public Ring {
 public:
  using Ring::Ring;

  // True once the writer stored a position that it cannot have.
  bool broken() const { return broken_; }
  size_t held() {
    const uint64_t held = positions_->written.load(std::memory_order_seq_cst) - own_;
    broken_ = broken_ || held > size_;
    return broken_ ? 0 : static_cast<size_t>(held);
  }
  // Returns the bytes read.
  size_t read(uint8_t *to, size_t room) {
    size_t done = 0;
    while (done < room) {
      const size_t part = std::min({room - done, held(), step()});
      if (part == 0) break;
      const size_t at = offset(), first = std::min(part, size_ - at);
      std::memcpy(to + done, bytes_ + at, first);
      if (part > first) std::memcpy(to + done + first, bytes_, part - first);
      own_ += part, done += part;
      positions_->read.store(own_, std::memory_order_seq_cst);
    }
    return done;
  }
};

}  // namespace accel_rl::replay

#endif
