#include "lanes.hpp"

#include <algorithm>
#include <string>

#include "error.hpp"

namespace accel_rl::upmem {

namespace {

constexpr size_t entry_bytes = sizeof(uint32_t);

constexpr size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

// Divides the rows of one DPU after another.
class Divider {
 public:
  explicit Divider(const Program &program)
      : program_(program),
        columns_(program.columns()),
        moved_(program.rule == ARL_SARSA ? 1 : columns_),
        places_(program.values(), none) {}

  // Give `count` records the places of their values, and lanes their rows. Records hold offsets
  // from the first value.
  void divide(const arl_wide_row *rows, uint32_t count, arl_owned_row *records, arl_lane *lanes) {
    entries.clear();
    indices.clear();
    for (uint32_t k = 0, row = 0; k < program_.lanes; ++k) {
      const uint32_t length = count / program_.lanes + (k < count % program_.lanes);
      lanes[k] = {row, length, static_cast<uint32_t>(entries.size()), 0};
      for (const uint32_t first = row; row < first + length; ++row) {
        const bool begins = row == first || rows[row].entry != rows[row - 1].entry;
        if (begins) entries.push_back(rows[row].entry);
        records[row] = {place(rows[row]) | (begins && row > first ? ARL_NEXT_RUN : 0),
                        rows[row].reward};
      }
    }
    for (size_t k = 0; k < indices.size(); k += moved_) places_[indices[k]] = none;
  }

  std::vector<uint32_t> entries, indices;

 private:
  static constexpr uint32_t none = UINT32_MAX;

  // Offset of the first value of W that a row may look at, among the DPU's.
  uint32_t place(const arl_wide_row &row) {
    const bool ended = !(row.meta >> ARL_BOOTSTRAP_BIT & 1);
    const uint32_t state = ended ? program_.states : row.next_entry / program_.actions;
    uint32_t index = state * columns_;
    if (program_.rule == ARL_SARSA && !ended) index += row.meta & ARL_NEXT_ACTION_MASK;
    uint32_t &found = places_[index];
    if (found == none) {
      found = static_cast<uint32_t>(indices.size() * entry_bytes);
      for (uint32_t k = 0; k < moved_; ++k) indices.push_back(index + k);
    }
    return found;
  }

  const Program &program_;
  uint32_t columns_, moved_;  // of W; of these, how many a row may look at
  std::vector<uint32_t> places_;
};

}  // namespace

uint32_t Program::columns() const {
  switch (rule) {
    case ARL_SARSA:
      return actions;
    case ARL_SARSA_EPSILON_GREEDY:
      return actions + 1;
    case ARL_DOUBLE_Q_LEARNING:
      return 2;
    default:
      return 1;
  }
}

Lanes divide(const Program &program, const Rows &rows) {
  Lanes made;
  made.lanes.resize(static_cast<size_t>(rows.chunks) * program.lanes);
  made.records.resize(static_cast<size_t>(rows.chunks) * rows.capacity);
  Divider divider(program);
  size_t most_values = 0;
  for (size_t d = 0; d < rows.chunks; ++d) {
    const size_t first = d * rows.capacity;
    const uint32_t count = static_cast<uint32_t>(rows.lengths[d]);
    divider.divide(reinterpret_cast<const arl_wide_row *>(rows.words) + first, count,
                   made.records.data() + first, made.lanes.data() + d * program.lanes);
    const size_t runs = divider.entries.size();
    if (runs > program.runs)
      throw Error(Kind::invalid, "chunk " + std::to_string(d) + " has " + std::to_string(runs) +
                                     " runs, more than " + std::to_string(program.runs));
    made.runs = std::max(made.runs, static_cast<uint32_t>(runs));
    made.longest = std::max(made.longest, (count + program.lanes - 1) / program.lanes);
    most_values = std::max(most_values, divider.indices.size());
    made.entries.push_back(divider.entries);
    made.indices.push_back(divider.indices);
  }
  made.results = ARL_COUNTER_BYTES + padded(program.tables() * made.runs * entry_bytes);
  made.operands = made.results + padded(most_values * entry_bytes);
  for (size_t k = 0; k < made.lanes.size(); ++k) {
    made.lanes[k].run = static_cast<uint32_t>(ARL_COUNTER_BYTES + made.lanes[k].run * entry_bytes);
    made.lanes[k].index = static_cast<uint32_t>(rows.first * size_t{program.lanes} + k);
  }
  for (arl_owned_row &record : made.records) record.value += static_cast<uint32_t>(made.results);
  return made;
}

}  // namespace accel_rl::upmem
