#include "buffer.hpp"

#include <sys/mman.h>

namespace accel_rl::replay {

namespace {

constexpr size_t page_bytes = 4096, large_page_bytes = size_t{2} << 20;

}  // namespace

bool Buffer::allocate(size_t bytes, bool dense) {
  release();
  if (bytes > SIZE_MAX - line_bytes) return false;
  // Large blocks come fresh from the system, which gives zeroed pages only when touched.
  memory_.reset(std::calloc(bytes + line_bytes, 1));
  if (!memory_) return false;
  const auto address = reinterpret_cast<uintptr_t>(memory_.get());
  const uintptr_t aligned = (address + line_bytes - 1) / line_bytes * line_bytes;
  data_ = static_cast<std::byte *>(memory_.get()) + (aligned - address);
#ifdef MADV_HUGEPAGE
  if (dense && bytes >= 2 * large_page_bytes) {
    // Advice only: without large pages it is slower, not wrong.
    const uintptr_t first = (aligned + page_bytes - 1) / page_bytes * page_bytes;
    const size_t length = (aligned + bytes - first) / page_bytes * page_bytes;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): whole pages are a matter of the address.
    (void)madvise(reinterpret_cast<void *>(first), length, MADV_HUGEPAGE);
  }
#endif
  return true;
}

}  // namespace accel_rl::replay
