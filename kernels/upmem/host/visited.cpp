#include "visited.hpp"

#include <algorithm>

#include "common.hpp"

namespace accel_rl::upmem {

Visited list_visited(const Program &program, const Rows &rows) {
  const uint32_t size = program.size();
  const auto *row = reinterpret_cast<const arl_wide_row *>(rows.words);
  std::vector<std::vector<uint16_t>> lists(rows.chunks);
  std::vector<bool> seen;
  size_t longest = 0;
  for (uint32_t d = 0; d < rows.chunks; ++d, row += rows.capacity) {
    seen.assign(size, false);
    for (int32_t t = 0; t < rows.lengths[d]; ++t) seen[row[t].entry] = true;
    for (uint32_t entry = 0; entry < size; ++entry)
      if (seen[entry]) lists[d].push_back(static_cast<uint16_t>(entry));
    longest = std::max(longest, lists[d].size());
  }
  Visited visited;
  const size_t padded = (longest + 3) / 4 * 4;
  if (2 * padded > size) return visited;
  visited.listed = static_cast<uint32_t>(padded);
  visited.entries.resize(rows.chunks * padded);
  for (uint32_t d = 0; d < rows.chunks; ++d) {
    std::copy(lists[d].begin(), lists[d].end(), visited.entries.begin() + d * padded);
    visited.counts.push_back(static_cast<uint32_t>(lists[d].size()));
  }
  return visited;
}

void expand(const Program &program, const Visited &visited, const uint32_t *starts, bool own,
            const uint32_t *values, uint32_t *tables) {
  const uint16_t *list = visited.entries.data();
  for (const uint32_t count : visited.counts) {
    std::copy_n(starts, program.entries(), tables);
    for (uint32_t table = 0; table < program.tables(); ++table) {
      for (uint32_t k = 0; k < count; ++k) tables[list[k]] = values[k];
      values += visited.listed;
      tables += program.size();
    }
    if (own) starts += program.entries();
    list += visited.listed;
  }
}

}  // namespace accel_rl::upmem
