// Large pages for large blocks: the first touch of small ones takes longer than their use.

#ifndef ACCEL_RL_REPLAY_LARGE_PAGES_HPP
#define ACCEL_RL_REPLAY_LARGE_PAGES_HPP

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace accel_rl::replay {

constexpr size_t large_page_bytes = size_t{2} << 20;

// Advice only: without large pages it is slower, not wrong.
inline void advise_large_pages(void *memory, size_t bytes) {
#ifdef MADV_HUGEPAGE
  if (bytes < 2 * large_page_bytes) return;
  constexpr uintptr_t page_bytes = 4096;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (address + page_bytes - 1) / page_bytes * page_bytes;
  const size_t length = (address + bytes - first) / page_bytes * page_bytes;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): whole pages are a matter of the address.
  (void)madvise(reinterpret_cast<void *>(first), length, MADV_HUGEPAGE);
#endif
}

}  // namespace accel_rl::replay

#endif
