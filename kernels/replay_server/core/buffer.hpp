// Memory of a table: zeroed, aligned to cache lines, and backed by pages only where touched.

#ifndef ACCEL_RL_REPLAY_BUFFER_HPP
#define ACCEL_RL_REPLAY_BUFFER_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace accel_rl::replay {

constexpr size_t line_bytes = 64;

class Buffer {
 public:
  // False, and empty, where there is no memory. `dense`: most of it will be used, so that large
  // pages are worth while.
  bool allocate(size_t bytes, bool dense);
  void release() { memory_.reset(), data_ = nullptr; }

  template <typename T>
  T *as() {
    return reinterpret_cast<T *>(data_);
  }
  template <typename T>
  const T *as() const {
    return reinterpret_cast<const T *>(data_);
  }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  std::byte *data_ = nullptr;
};

}  // namespace accel_rl::replay

#endif
