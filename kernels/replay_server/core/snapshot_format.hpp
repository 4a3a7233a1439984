// The file of a snapshot: a header, then blocks, each with checksums of its head and its payload.

#ifndef ACCEL_RL_REPLAY_SNAPSHOT_FORMAT_HPP
#define ACCEL_RL_REPLAY_SNAPSHOT_FORMAT_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bytes.hpp"
#include "crc32c.hpp"
#include "schema.hpp"

namespace accel_rl::replay::snapshot {

constexpr uint64_t magic = UINT64_C(0x544F4853504E5241);  // "ARNPSHOT"
constexpr uint32_t version = 1;

enum Kind : uint32_t {
  table = 1,  // configuration and counters, one for each table, before all else
  rows = 2,   // consecutive slots of a table: columns, generations, weights
  mail = 3,   // a part of a message
  end = 4     // how many blocks came before; nothing follows
};

constexpr size_t head_bytes = 24;                 // of the file, and of a block
constexpr size_t part_bytes = size_t{256} << 10;  // of a block, unless one item is larger

// magic, version, 8 unused bytes, checksum of these.
inline void put_header(std::vector<std::byte> *block) {
  put(block, magic);
  put(block, version);
  put(block, uint64_t{0});
  put(block, crc32c(block->data(), block->size()));
}

// kind, 4 unused bytes, bytes of the payload, its checksum, checksum of these.
inline void fill_block_head(std::byte *head, uint32_t kind, const std::byte *payload,
                            uint64_t count) {
  const uint32_t unused = 0, sum = crc32c(payload, count);
  std::memcpy(head, &kind, 4);
  std::memcpy(head + 4, &unused, 4);
  std::memcpy(head + 8, &count, 8);
  std::memcpy(head + 16, &sum, 4);
  const uint32_t head_sum = crc32c(head, head_bytes - 4);
  std::memcpy(head + 20, &head_sum, 4);
}

void put_config(std::vector<std::byte> *block, const TableConfig &config);
TableConfig take_config(ByteReader *reader);  // not checked

}  // namespace accel_rl::replay::snapshot

#endif
