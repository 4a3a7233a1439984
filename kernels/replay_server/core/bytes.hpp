// Numbers as little-endian bytes, written to the end of a block and read with every end checked.

#ifndef ACCEL_RL_REPLAY_BYTES_HPP
#define ACCEL_RL_REPLAY_BYTES_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace accel_rl::replay {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "formats are little-endian, as memory is");

inline void put_bytes(std::vector<std::byte> *block, const void *bytes, size_t count) {
  const auto *from = static_cast<const std::byte *>(bytes);
  block->insert(block->end(), from, from + count);
}

template <typename Number>
void put(std::vector<std::byte> *block, Number number) {
  put_bytes(block, &number, sizeof number);
}

inline void put_text(std::vector<std::byte> *block, const std::string &text) {
  put(block, static_cast<uint32_t>(text.size()));
  put_bytes(block, text.data(), text.size());
}

// Reads one after the other; once something is missing all is 0, and ok() false.
class ByteReader {
 public:
  ByteReader(const std::byte *bytes, size_t count) : at_(bytes), left_(count) {}

  const std::byte *take_bytes(size_t count) {
    if (count > left_) {
      ok_ = false, left_ = 0;
      return nullptr;
    }
    const std::byte *taken = at_;
    at_ += count, left_ -= count;
    return taken;
  }

  template <typename Number>
  Number take() {
    Number number = 0;
    const std::byte *bytes = take_bytes(sizeof number);
    if (bytes) std::memcpy(&number, bytes, sizeof number);
    return number;
  }

  std::string take_text() {
    const auto count = take<uint32_t>();
    const std::byte *bytes = take_bytes(count);
    return bytes ? std::string(reinterpret_cast<const char *>(bytes), count) : std::string();
  }

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && left_ == 0; }
  size_t left() const { return left_; }

 private:
  const std::byte *at_;
  size_t left_;
  bool ok_ = true;
};

}  // namespace accel_rl::replay

#endif
