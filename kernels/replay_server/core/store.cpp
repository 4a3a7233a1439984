#include "store.hpp"

#include <cstring>

namespace accel_rl::replay {

namespace {

constexpr size_t most_prefetched = 4 * line_bytes;  // of a row: the processor sees the rest coming

template <size_t bytes>
void gather_fixed(const std::byte *from, const uint32_t *slots, uint32_t count, std::byte *to) {
  for (uint32_t k = 0; k < count; ++k) std::memcpy(to + k * bytes, from + slots[k] * bytes, bytes);
}

void gather_rows(const std::byte *from, size_t bytes, const uint32_t *slots, uint32_t count,
                 std::byte *to) {
  switch (bytes) {
    case 1:
      return gather_fixed<1>(from, slots, count, to);
    case 2:
      return gather_fixed<2>(from, slots, count, to);
    case 4:
      return gather_fixed<4>(from, slots, count, to);
    case 8:
      return gather_fixed<8>(from, slots, count, to);
    case 16:
      return gather_fixed<16>(from, slots, count, to);
    case 32:
      return gather_fixed<32>(from, slots, count, to);
    default:
      for (uint32_t k = 0; k < count; ++k)
        std::memcpy(to + k * bytes, from + slots[k] * bytes, bytes);
  }
}

}  // namespace

bool Store::allocate(const TableConfig &config, bool dense) {
  bytes_.clear();
  data_ = std::vector<Buffer>(config.columns.size());
  for (size_t k = 0; k < data_.size(); ++k) {
    bytes_.push_back(config.columns[k].bytes());
    if (!data_[k].allocate(bytes_[k] * config.capacity, dense)) return false;
  }
  return generations_.allocate(size_t{config.capacity} * sizeof(uint32_t), dense);
}

void Store::write(uint32_t first, uint32_t count, const std::byte *const *columns,
                  uint32_t offset) {
  for (size_t k = 0; k < data_.size(); ++k)
    std::memcpy(row(k, first), columns[k] + offset * bytes_[k], count * bytes_[k]);
  uint32_t *generation = generations() + first;
  for (uint32_t k = 0; k < count; ++k) {
    ++generation[k];
    generation[k] += generation[k] == 0;
  }
}

void Store::prefetch(uint32_t slot) const {
  __builtin_prefetch(generations() + slot);
  for (size_t k = 0; k < data_.size(); ++k) {
    const std::byte *at = row(k, slot);
    const size_t bytes = bytes_[k] < most_prefetched ? bytes_[k] : most_prefetched;
    __builtin_prefetch(at);
    for (size_t offset = line_bytes; offset < bytes; offset += line_bytes)
      __builtin_prefetch(at + offset);
    // A row may begin within a line.
    __builtin_prefetch(at + bytes - 1);
  }
}

void Store::gather(const uint32_t *slots, uint32_t count, std::byte *const *columns,
                   uint32_t offset) const {
  for (size_t k = 0; k < data_.size(); ++k)
    gather_rows(data_[k].as<std::byte>(), bytes_[k], slots, count, columns[k] + offset * bytes_[k]);
}

}  // namespace accel_rl::replay
