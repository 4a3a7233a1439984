// What slots held when a snapshot began, kept where they change before they are written.

#ifndef ACCEL_RL_REPLAY_SHADOW_HPP
#define ACCEL_RL_REPLAY_SHADOW_HPP

#include <cstdint>

#include "buffer.hpp"
#include "schema.hpp"
#include "store.hpp"
#include "sum_tree.hpp"

namespace accel_rl::replay {

class Shadow {
 public:
  // False where there is no memory. Memory is as large as the table, but only what changes
  // takes pages.
  bool begin(const TableConfig &config, uint32_t size, bool weighted);
  void end();
  bool active() const { return active_; }
  void passed(uint32_t slot) { next_ = slot; }  // those below are written

  // Call before the item, or only the weight, of a slot changes.
  void save_item(const Store &store, const SumTree &tree, uint32_t slot);
  void save_weight(const SumTree &tree, uint32_t slot);

  // Copy what consecutive slots held when the snapshot began, of any alignment.
  void rows(const Store &store, size_t column, uint32_t first, uint32_t count, std::byte *to) const;
  void generations(const Store &store, uint32_t first, uint32_t count, std::byte *to) const;
  void weights(const SumTree &tree, uint32_t first, uint32_t count, std::byte *to) const;

 private:
  enum : uint8_t { item_saved = 1, weight_saved = 2 };
  bool concerns(uint32_t slot) const { return slot >= next_ && slot < size_; }
  // Copy rows from where they are now, then those that were saved as `what`.
  void copy(const std::byte *now, const std::byte *saved, size_t bytes, uint8_t what,
            uint32_t first, uint32_t count, std::byte *to) const;

  bool active_ = false, weighted_ = false;
  uint32_t next_ = 0, size_ = 0;
  Store items_;
  Buffer weights_, saved_;  // float, uint8 [size]
};

}  // namespace accel_rl::replay

#endif
