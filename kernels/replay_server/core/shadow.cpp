#include "shadow.hpp"

#include <cstring>

namespace accel_rl::replay {

bool Shadow::begin(const TableConfig &config, uint32_t size, bool weighted) {
  TableConfig held = config;
  held.capacity = size;
  weighted_ = weighted, size_ = size, next_ = 0;
  active_ = items_.allocate(held, false) && saved_.allocate(size, false) &&
            weights_.allocate(size_t{size} * sizeof(float), false);
  if (!active_) end();
  return active_;
}

void Shadow::end() {
  active_ = false;
  items_ = Store();
  weights_.release(), saved_.release();
}

void Shadow::save_weight(const SumTree &tree, uint32_t slot) {
  if (!concerns(slot)) return;
  uint8_t &saved = saved_.as<uint8_t>()[slot];
  if (saved & weight_saved) return;
  weights_.as<float>()[slot] = tree.weights()[slot];
  saved |= weight_saved;
}

void Shadow::save_item(const Store &store, const SumTree &tree, uint32_t slot) {
  if (!concerns(slot)) return;
  if (weighted_) save_weight(tree, slot);
  uint8_t &saved = saved_.as<uint8_t>()[slot];
  if (saved & item_saved) return;
  for (size_t k = 0; k < store.columns(); ++k)
    std::memcpy(items_.row(k, slot), store.row(k, slot), store.bytes_of(k));
  items_.generations()[slot] = store.generations()[slot];
  saved |= item_saved;
}

void Shadow::copy(const std::byte *now, const std::byte *saved, size_t bytes, uint8_t what,
                  uint32_t first, uint32_t count, std::byte *to) const {
  std::memcpy(to, now + first * bytes, count * bytes);
  for (uint32_t k = 0; k < count; ++k)
    if (saved_.as<uint8_t>()[first + k] & what)
      std::memcpy(to + k * bytes, saved + (first + k) * bytes, bytes);
}

void Shadow::rows(const Store &store, size_t column, uint32_t first, uint32_t count,
                  std::byte *to) const {
  copy(store.row(column, 0), items_.row(column, 0), store.bytes_of(column), item_saved, first,
       count, to);
}

void Shadow::generations(const Store &store, uint32_t first, uint32_t count, std::byte *to) const {
  copy(reinterpret_cast<const std::byte *>(store.generations()),
       reinterpret_cast<const std::byte *>(items_.generations()), sizeof(uint32_t), item_saved,
       first, count, to);
}

void Shadow::weights(const SumTree &tree, uint32_t first, uint32_t count, std::byte *to) const {
  copy(reinterpret_cast<const std::byte *>(tree.weights()), weights_.as<std::byte>(), sizeof(float),
       weight_saved, first, count, to);
}

}  // namespace accel_rl::replay
