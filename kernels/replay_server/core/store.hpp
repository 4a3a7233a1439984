// Items in slots, column by column, and how often each slot was written.

#ifndef ACCEL_RL_REPLAY_STORE_HPP
#define ACCEL_RL_REPLAY_STORE_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "buffer.hpp"
#include "schema.hpp"

namespace accel_rl::replay {

class Store {
 public:
  // False where there is no memory.
  bool allocate(const TableConfig &config, bool dense);

  // Write `count` items to consecutive slots that do not pass the end; columns[i] are the items'
  // bytes of column i, contiguous, any alignment. Generations grow by one, from 1 on, without 0.
  void write(uint32_t first, uint32_t count, const std::byte *const *columns, uint32_t offset);

  // Copy the items of slots to columns, each contiguous, any alignment. Fetch them first: then the
  // misses of all columns overlap.
  void prefetch(uint32_t slot) const;
  void gather(const uint32_t *slots, uint32_t count, std::byte *const *columns,
              uint32_t offset) const;

  size_t columns() const { return bytes_.size(); }
  size_t bytes_of(size_t column) const { return bytes_[column]; }  // of one item
  std::byte *row(size_t column, uint32_t slot) {
    return data_[column].as<std::byte>() + slot * bytes_[column];
  }
  const std::byte *row(size_t column, uint32_t slot) const {
    return data_[column].as<std::byte>() + slot * bytes_[column];
  }
  uint32_t *generations() { return generations_.as<uint32_t>(); }
  const uint32_t *generations() const { return generations_.as<uint32_t>(); }

 private:
  std::vector<size_t> bytes_;
  std::vector<Buffer> data_;
  Buffer generations_;
};

}  // namespace accel_rl::replay

#endif
