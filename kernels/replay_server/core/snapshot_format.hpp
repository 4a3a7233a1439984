// What the blocks of a snapshot hold.

#ifndef ACCEL_RL_REPLAY_SNAPSHOT_FORMAT_HPP
#define ACCEL_RL_REPLAY_SNAPSHOT_FORMAT_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bytes.hpp"
#include "schema.hpp"

namespace accel_rl::replay::snapshot {

constexpr uint64_t magic = UINT64_C(0x544F4853504E5241);  // "ARNPSHOT"

enum Kind : uint32_t {
  table = 1,   // configuration and counters, one for each table, before all else, by number
  rows = 2,    // consecutive slots of a table: columns, generations, weights
  mail = 3,    // a part of a message
  end = 4,     // how many blocks came before; nothing follows
  removed = 5  // a table that was removed: no other has its number
};

constexpr size_t part_bytes = size_t{64} << 10;  // of a block, unless one item is larger

void put_config(std::vector<std::byte> *block, const TableConfig &config);
TableConfig take_config(ByteReader *reader);  // not checked

}  // namespace accel_rl::replay::snapshot

#endif
