// What a table is: its columns and how it selects, limits and draws. Values, checked as a whole.

#ifndef ACCEL_RL_REPLAY_SCHEMA_HPP
#define ACCEL_RL_REPLAY_SCHEMA_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "status.hpp"

namespace accel_rl::replay {

constexpr uint32_t most_capacity = uint32_t{1} << 30;
constexpr uint32_t most_columns = 256;
constexpr uint32_t most_axes = 8;
constexpr uint32_t most_name_bytes = 255;
constexpr uint64_t most_item_bytes = uint64_t{1} << 30;
constexpr float most_exponent = 16;
constexpr uint32_t least_groups = 4, most_groups = 256;  // of AMPER

// Little-endian, by NumPy's codes.
enum class Dtype : uint8_t { b1 = 0, i1, i2, i4, i8, u1, u2, u4, u8, f2, f4, f8 };

size_t dtype_bytes(Dtype dtype);
const char *dtype_code(Dtype dtype);                 // "f4"; "" for a number that is no Dtype
bool dtype_from_code(const char *code, Dtype *out);  // false: no such code

struct Column {
  std::string name;
  Dtype dtype = Dtype::f4;
  std::vector<uint32_t> shape;  // of one item; no axes: a scalar

  size_t bytes() const;  // of one item, at most `most_item_bytes` once checked
};

enum class Sampler : uint8_t { uniform = 0, prioritised = 1, amper_fr = 2 };

// Reverb's: inserts * samples_per_insert - samples stays in [min_diff, max_diff].
struct LimiterConfig {
  uint64_t min_size = 1;  // items without which nothing is drawn
  bool active = false;    // whether the ratio is limited too
  double samples_per_insert = 1;
  double min_diff = 0, max_diff = 0;
};

// AMPER-fr's exact radius search: see docs/amper.md. Without effect on other samplers.
struct AmperConfig {
  uint32_t groups = 20;
  float csp_ratio = 0.15F;  // wanted size of the candidate set over that of the table
};

struct TableConfig {
  std::string name;
  uint32_t capacity = 0;  // items
  Sampler sampler = Sampler::prioritised;
  float priority_exponent = 0.6F;                               // alpha; without effect on uniform
  float max_priority = std::numeric_limits<float>::infinity();  // higher ones count as this one
  std::vector<Column> columns;
  LimiterConfig limiter;
  AmperConfig amper;

  size_t item_bytes() const;  // sum over columns
};

bool operator==(const Column &a, const Column &b);
bool operator==(const LimiterConfig &a, const LimiterConfig &b);
bool operator==(const AmperConfig &a, const AmperConfig &b);
bool operator==(const TableConfig &a, const TableConfig &b);
inline bool operator!=(const TableConfig &a, const TableConfig &b) { return !(a == b); }

// Status::ok, bad_name or bad_config. `why`, if not null, says argument, value and limit.
Status check(const TableConfig &config, std::string *why);
bool is_name(const std::string &name);  // 1 to most_name_bytes bytes of UTF-8, no ASCII control

}  // namespace accel_rl::replay

#endif
