#include "schema.hpp"

#include <cmath>
#include <cstring>
#include <iterator>

namespace accel_rl::replay {

namespace {

struct Description {
  const char *code;
  size_t bytes;
};

// Indexed by Dtype.
constexpr Description descriptions[] = {{"b1", 1}, {"i1", 1}, {"i2", 2}, {"i4", 4},
                                        {"i8", 8}, {"u1", 1}, {"u2", 2}, {"u4", 4},
                                        {"u8", 8}, {"f2", 2}, {"f4", 4}, {"f8", 8}};

Status refuse(std::string *why, Status status, const std::string &message) {
  if (why) *why = message;
  return status;
}

std::string limits(const char *name, const std::string &value, const std::string &limit) {
  return std::string(name) + " must be " + limit + ", got " + value;
}

// Bytes of an item of the column, or above most_item_bytes.
uint64_t checked_bytes(const Column &column) {
  uint64_t bytes = dtype_bytes(column.dtype);
  for (const uint32_t size : column.shape) {
    bytes *= size;  // below 2^62
    if (bytes > most_item_bytes) return most_item_bytes + 1;
  }
  return bytes;
}

// Bytes of the UTF-8 character there; 0 if it is none, or not in its shortest form.
size_t character_bytes(const std::string &text, size_t at) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[at + k]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() - at < bytes) return 0;
  for (size_t k = 1; k < bytes; ++k)
    if ((byte(k) & 0xC0) != 0x80) return 0;
  const unsigned second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90)) return 0;
  if (first == 0xED && second > 0x9F) return 0;  // a half of a UTF-16 pair
  return first == 0xF4 && second > 0x8F ? 0 : bytes;
}

Status check_column(const Column &column, std::string *why) {
  if (!is_name(column.name))
    return refuse(why, Status::bad_name,
                  "a column's name must be 1 to 255 printable bytes of UTF-8");
  const std::string prefix = "column " + column.name + ": ";
  if (dtype_bytes(column.dtype) == 0)
    return refuse(why, Status::bad_config, prefix + "no such dtype");
  if (column.shape.size() > most_axes)
    return refuse(why, Status::bad_config,
                  prefix + limits("axes", std::to_string(column.shape.size()), "at most 8"));
  const uint64_t bytes = checked_bytes(column);
  if (bytes < 1 || bytes > most_item_bytes)
    return refuse(why, Status::bad_config, prefix + "an item must have 1 to 2^30 bytes");
  return Status::ok;
}

Status check_columns(const std::vector<Column> &columns, std::string *why) {
  if (columns.empty() || columns.size() > most_columns)
    return refuse(why, Status::bad_config,
                  limits("columns", std::to_string(columns.size()), "from 1 to 256"));
  uint64_t bytes = 0;
  for (size_t k = 0; k < columns.size(); ++k) {
    const Status status = check_column(columns[k], why);
    if (status != Status::ok) return status;
    for (size_t j = 0; j < k; ++j)
      if (columns[j].name == columns[k].name)
        return refuse(why, Status::bad_config, "column " + columns[k].name + " is there twice");
    bytes += columns[k].bytes();
  }
  if (bytes > most_item_bytes)
    return refuse(why, Status::bad_config,
                  limits("an item's bytes", std::to_string(bytes), "at most 2^30"));
  return Status::ok;
}

Status check_limiter(const LimiterConfig &limiter, uint32_t capacity, std::string *why) {
  if (limiter.min_size < 1 || limiter.min_size > capacity)
    return refuse(why, Status::bad_config,
                  limits("min_size", std::to_string(limiter.min_size), "from 1 to the capacity"));
  if (!limiter.active) return Status::ok;
  if (!(limiter.samples_per_insert > 0 && std::isfinite(limiter.samples_per_insert)))
    return refuse(why, Status::bad_config,
                  limits("samples_per_insert", std::to_string(limiter.samples_per_insert),
                         "positive and finite"));
  if (!(limiter.min_diff <= limiter.max_diff))
    return refuse(why, Status::bad_config,
                  limits("min_diff", std::to_string(limiter.min_diff),
                         "at most max_diff, " + std::to_string(limiter.max_diff)));
  return Status::ok;
}

}  // namespace

size_t dtype_bytes(Dtype dtype) {
  const auto k = static_cast<size_t>(dtype);
  return k < std::size(descriptions) ? descriptions[k].bytes : 0;
}

const char *dtype_code(Dtype dtype) {
  const auto k = static_cast<size_t>(dtype);
  return k < std::size(descriptions) ? descriptions[k].code : "";
}

bool dtype_from_code(const char *code, Dtype *out) {
  for (size_t k = 0; k < std::size(descriptions); ++k)
    if (std::strcmp(descriptions[k].code, code) == 0) {
      *out = static_cast<Dtype>(k);
      return true;
    }
  return false;
}

size_t Column::bytes() const { return checked_bytes(*this); }

size_t TableConfig::item_bytes() const {
  size_t bytes = 0;
  for (const Column &column : columns) bytes += column.bytes();
  return bytes;
}

bool operator==(const Column &a, const Column &b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape;
}

bool operator==(const LimiterConfig &a, const LimiterConfig &b) {
  if (a.min_size != b.min_size || a.active != b.active) return false;
  return !a.active || (a.samples_per_insert == b.samples_per_insert && a.min_diff == b.min_diff &&
                       a.max_diff == b.max_diff);
}

bool operator==(const AmperConfig &a, const AmperConfig &b) {
  return a.groups == b.groups && a.csp_ratio == b.csp_ratio;
}

// What has no effect on the sampler does not count.
bool operator==(const TableConfig &a, const TableConfig &b) {
  const bool weighted = a.sampler != Sampler::uniform;
  return a.name == b.name && a.capacity == b.capacity && a.sampler == b.sampler &&
         a.columns == b.columns && a.limiter == b.limiter &&
         (!weighted ||
          (a.priority_exponent == b.priority_exponent && a.max_priority == b.max_priority)) &&
         (a.sampler != Sampler::amper_fr || a.amper == b.amper);
}

bool is_name(const std::string &name) {
  if (name.empty() || name.size() > most_name_bytes) return false;
  for (size_t at = 0; at < name.size();) {
    const size_t bytes = character_bytes(name, at);
    if (bytes == 0 || (bytes == 1 && (name[at] < 0x20 || name[at] == 0x7F))) return false;
    at += bytes;
  }
  return true;
}

Status check(const TableConfig &config, std::string *why) {
  if (!is_name(config.name))
    return refuse(why, Status::bad_name,
                  "a table's name must be 1 to 255 printable bytes of UTF-8");
  if (config.capacity < 1 || config.capacity > most_capacity)
    return refuse(why, Status::bad_config,
                  limits("capacity", std::to_string(config.capacity), "from 1 to 2^30"));
  if (config.sampler > Sampler::amper_fr)
    return refuse(why, Status::bad_config,
                  limits("sampler", std::to_string(static_cast<int>(config.sampler)), "0, 1 or 2"));
  if (!(config.priority_exponent >= 0 && config.priority_exponent <= most_exponent))
    return refuse(
        why, Status::bad_config,
        limits("priority_exponent", std::to_string(config.priority_exponent), "from 0 to 16"));
  if (!(config.max_priority > 0))
    return refuse(why, Status::bad_config,
                  limits("max_priority", std::to_string(config.max_priority), "above 0"));
  const AmperConfig &amper = config.amper;
  if (amper.groups < least_groups || amper.groups > most_groups)
    return refuse(why, Status::bad_config,
                  limits("groups", std::to_string(amper.groups), "from 4 to 256"));
  if (!(amper.csp_ratio > 0 && amper.csp_ratio <= 1))
    return refuse(why, Status::bad_config,
                  limits("csp_ratio", std::to_string(amper.csp_ratio), "above 0 and at most 1"));
  const Status status = check_columns(config.columns, why);
  return status != Status::ok ? status : check_limiter(config.limiter, config.capacity, why);
}

}  // namespace accel_rl::replay
