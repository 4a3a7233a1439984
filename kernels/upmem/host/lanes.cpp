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

  // Make records of `count` rows, with the places of their values, and give lanes their records.
  // Records hold offsets from the first value.
  void divide(const arl_wide_row *rows, uint32_t count, arl_lane *lanes) {
    const bool heads = program_.order == ARL_RAN;
    size_t head = 0;
    entries.clear();
    indices.clear();
    records.clear();
    for (uint32_t k = 0, row = 0; k < program_.lanes; ++k) {
      const uint32_t length = count / program_.lanes + (k < count % program_.lanes);
      const auto begin = static_cast<uint32_t>(records.size());
      lanes[k] = {begin, 0, static_cast<uint32_t>(entries.size()), 0};
      for (const uint32_t first = row; row < first + length; ++row) {
        const bool begins = row == first || rows[row].entry != rows[row - 1].entry;
        if (begins) entries.push_back(rows[row].entry);
        if (begins && heads) {
          head = records.size();
          records.push_back({0, 0});
        }
        if (heads) ++records[head].reward;
        const uint32_t mark = begins && row > first && !heads ? ARL_NEXT_RUN : 0;
        records.push_back({place(rows[row]) | mark, rows[row].reward});
      }
      lanes[k].rows = static_cast<uint32_t>(records.size()) - begin;
    }
    for (size_t k = 0; k < indices.size(); k += moved_) places_[indices[k]] = none;
  }

  std::vector<uint32_t> entries, indices;
  std::vector<arl_owned_row> records;

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
  std::vector<std::vector<arl_owned_row>> records;
  Divider divider(program);
  size_t most_values = 0;
  for (size_t d = 0; d < rows.chunks; ++d) {
    const size_t first = d * rows.capacity;
    divider.divide(reinterpret_cast<const arl_wide_row *>(rows.words) + first,
                   static_cast<uint32_t>(rows.lengths[d]), made.lanes.data() + d * program.lanes);
    const size_t runs = divider.entries.size();
    if (runs > program.runs)
      throw Error(Kind::invalid, "chunk " + std::to_string(d) + " has " + std::to_string(runs) +
                                     " runs, more than " + std::to_string(program.runs));
    made.runs = std::max(made.runs, static_cast<uint32_t>(runs));
    made.stride = std::max(made.stride, divider.records.size());
    most_values = std::max(most_values, divider.indices.size());
    made.entries.push_back(divider.entries);
    made.indices.push_back(divider.indices);
    records.push_back(divider.records);
  }
  made.results = ARL_COUNTER_BYTES + padded(program.tables() * made.runs * entry_bytes);
  made.operands = made.results + padded(most_values * entry_bytes);
  for (size_t k = 0; k < made.lanes.size(); ++k) {
    made.lanes[k].run = static_cast<uint32_t>(ARL_COUNTER_BYTES + made.lanes[k].run * entry_bytes);
    made.lanes[k].index = static_cast<uint32_t>(rows.first * size_t{program.lanes} + k);
    made.longest = std::max(made.longest, made.lanes[k].rows);
  }
  made.records.resize(rows.chunks * made.stride);
  for (size_t d = 0; d < rows.chunks; ++d)
    std::copy(records[d].begin(), records[d].end(), made.records.begin() + d * made.stride);
  for (arl_owned_row &record : made.records) record.value += static_cast<uint32_t>(made.results);
  return made;
}

}  // namespace accel_rl::upmem
