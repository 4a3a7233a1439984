#include "records.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "common.hpp"
#include "error.hpp"

namespace accel_rl::upmem {

namespace {

const arl_wide_row *row_at(const Rows &rows, size_t chunk, size_t row) {
  return reinterpret_cast<const arl_wide_row *>(rows.words) + chunk * rows.capacity + row;
}

bool ends(const arl_wide_row *row) { return !(row->meta >> ARL_BOOTSTRAP_BIT & 1); }

[[noreturn]] void refuse(size_t chunk, size_t row, const char *name, uint32_t limit, uint32_t got) {
  throw Error(Kind::invalid, "row " + std::to_string(row) + " of chunk " + std::to_string(chunk) +
                                 ": " + name + " must be in [0, " + std::to_string(limit) +
                                 "), got " + std::to_string(static_cast<int32_t>(got)));
}

// Codes of the distinct rewards; false: there are too many.
bool collect_rewards(const Rows &rows, std::unordered_map<uint32_t, uint32_t> &codes) {
  for (size_t d = 0; d < rows.chunks; ++d)
    for (size_t t = 0; t < static_cast<size_t>(rows.lengths[d]); ++t) {
      codes.try_emplace(row_at(rows, d, t)->reward, static_cast<uint32_t>(codes.size()));
      if (codes.size() > ARL_CODEBOOK) return false;
    }
  return true;
}

}  // namespace

void check_rows(const Program &program, const Rows &rows, uint32_t dpus) {
  if (rows.chunks != dpus)
    throw Error(Kind::invalid, "there are " + std::to_string(rows.chunks) + " chunks for " +
                                   std::to_string(dpus) + " DPUs");
  const uint32_t size = program.size(), actions = program.actions;
  const uint32_t most = program.order == ARL_RAN ? program.random_blocks * ARL_RANDOM_BLOCK
                                                 : static_cast<uint32_t>(INT32_MAX);
  for (size_t d = 0; d < rows.chunks; ++d) {
    const int32_t length = rows.lengths[d];
    const uint32_t longest = std::min(rows.capacity, most);
    if (length < 0 || static_cast<uint32_t>(length) > longest)
      throw Error(Kind::invalid, "lengths[" + std::to_string(d) + "] must be in [0, " +
                                     std::to_string(longest) + "], got " + std::to_string(length));
    for (size_t t = 0; t < static_cast<size_t>(length); ++t) {
      const arl_wide_row *row = row_at(rows, d, t);
      const uint32_t next_action = row->meta & ARL_NEXT_ACTION_MASK;
      if (row->entry >= size) refuse(d, t, "s * A + a", size, row->entry);
      if (row->next_entry > size - actions)
        refuse(d, t, "s' * A", size - actions + 1, row->next_entry);
      if (next_action >= actions) refuse(d, t, "next_action", actions, next_action);
    }
  }
}

Records pack(const Program &program, const Rows &rows) {
  std::unordered_map<uint32_t, uint32_t> codes;
  Records records;
  records.wide = program.size() > 65536 || program.actions > 256 || !collect_rewards(rows, codes);
  const size_t row_bytes = records.wide ? sizeof(arl_wide_row) : sizeof(arl_record);
  records.bytes = rows.capacity * row_bytes;
  records.data.resize(rows.chunks * records.bytes / sizeof(uint64_t));
  if (!records.wide) {
    records.codebook.resize(ARL_CODEBOOK);
    for (const auto &[reward, code] : codes) records.codebook[code] = reward;
  }
  char *to = reinterpret_cast<char *>(records.data.data());
  for (size_t d = 0; d < rows.chunks; ++d)
    for (size_t t = 0; t < static_cast<size_t>(rows.lengths[d]); ++t) {
      const arl_wide_row *row = row_at(rows, d, t);
      char *at = to + d * records.bytes + t * row_bytes;
      if (records.wide) {
        std::memcpy(at, row, sizeof *row);
        continue;
      }
      arl_record record;
      record.state_action = static_cast<uint16_t>(row->entry);
      record.next_row = static_cast<uint16_t>(row->next_entry);
      record.reward = static_cast<int16_t>(codes.at(row->reward));
      record.next_action = static_cast<uint8_t>(row->meta & ARL_NEXT_ACTION_MASK);
      record.flags = ends(row) ? ARL_TERMINATED : 0;
      std::memcpy(at, &record, sizeof record);
    }
  return records;
}

}  // namespace accel_rl::upmem
