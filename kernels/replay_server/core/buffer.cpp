#include "buffer.hpp"

#include "large_pages.hpp"

namespace accel_rl::replay {

bool Buffer::allocate(size_t bytes, bool dense) {
  release();
  if (bytes > SIZE_MAX - line_bytes) return false;
  // Large blocks come fresh from the system, which gives zeroed pages only when touched.
  memory_.reset(std::calloc(bytes + line_bytes, 1));
  if (!memory_) return false;
  const auto address = reinterpret_cast<uintptr_t>(memory_.get());
  const uintptr_t aligned = (address + line_bytes - 1) / line_bytes * line_bytes;
  data_ = static_cast<std::byte *>(memory_.get()) + (aligned - address);
  if (dense) advise_large_pages(data_, bytes);
  return true;
}

}  // namespace accel_rl::replay
