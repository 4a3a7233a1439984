// Bytes of frames: memory at addresses that a section's alignment divides, grown on demand.

#ifndef ACCEL_RL_REPLAY_PROTOCOL_BUFFER_HPP
#define ACCEL_RL_REPLAY_PROTOCOL_BUFFER_HPP

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "../core/large_pages.hpp"
#include "frame.hpp"

namespace accel_rl::replay {

class FrameBuffer {
 public:
  FrameBuffer() = default;
  FrameBuffer(FrameBuffer &&other) noexcept { swap(other); }
  FrameBuffer &operator=(FrameBuffer &&other) noexcept {
    swap(other);
    return *this;
  }

  uint8_t *data() { return memory_.get(); }
  const uint8_t *data() const { return memory_.get(); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }

  // Room for so many bytes, keeping those that are there; false where there is no memory.
  bool reserve(size_t bytes) {
    if (bytes <= capacity_) return true;
    const size_t room = aligned(bytes);  // aligned_alloc wants a multiple of the alignment
    auto *fresh = static_cast<uint8_t *>(std::aligned_alloc(section_align, room));
    if (!fresh) return false;
    advise_large_pages(fresh, room);
    if (size_ > 0) std::memcpy(fresh, memory_.get(), size_);
    memory_.reset(fresh);
    capacity_ = room;
    return true;
  }

  // Bytes beyond the old size are not set.
  bool resize(size_t bytes) {
    if (!reserve(bytes)) return false;
    size_ = bytes;
    return true;
  }

  bool append(const uint8_t *bytes, size_t count) {
    const size_t before = size_;
    if (size_ + count > capacity_ && !reserve(std::max(size_ + count, 2 * capacity_))) return false;
    if (count > 0) std::memcpy(data() + before, bytes, count);
    size_ = before + count;
    return true;
  }

  // Drop bytes at the front.
  void consume(size_t count) {
    size_ -= count;
    if (size_ > 0) std::memmove(data(), data() + count, size_);
  }

  void clear() { size_ = 0; }
  void release() { memory_.reset(), size_ = capacity_ = 0; }
  void swap(FrameBuffer &other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  struct Free {
    void operator()(uint8_t *memory) const { std::free(memory); }
  };
  std::unique_ptr<uint8_t, Free> memory_;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace accel_rl::replay

#endif
