#include "snapshot_format.hpp"

#include <algorithm>

namespace accel_rl::replay::snapshot {

void put_config(std::vector<std::byte> *block, const TableConfig &config) {
  put_text(block, config.name);
  put(block, config.capacity);
  put(block, static_cast<uint32_t>(config.sampler));
  put(block, config.priority_exponent);
  put(block, config.max_priority);
  put(block, config.limiter.min_size);
  put(block, static_cast<uint32_t>(config.limiter.active));
  put(block, config.limiter.samples_per_insert);
  put(block, config.limiter.min_diff);
  put(block, config.limiter.max_diff);
  put(block, config.amper.groups);
  put(block, config.amper.csp_ratio);
  put(block, static_cast<uint32_t>(config.columns.size()));
  for (const Column &column : config.columns) {
    put_text(block, column.name);
    put(block, static_cast<uint32_t>(column.dtype));
    put(block, static_cast<uint32_t>(column.shape.size()));
    for (const uint32_t size : column.shape) put(block, size);
  }
}

TableConfig take_config(ByteReader *reader) {
  TableConfig config;
  config.name = reader->take_text();
  config.capacity = reader->take<uint32_t>();
  // Numbers above a byte are no sampler and no dtype; 255 is neither.
  config.sampler = static_cast<Sampler>(std::min<uint32_t>(reader->take<uint32_t>(), 255));
  config.priority_exponent = reader->take<float>();
  config.max_priority = reader->take<float>();
  config.limiter.min_size = reader->take<uint64_t>();
  config.limiter.active = reader->take<uint32_t>() != 0;
  config.limiter.samples_per_insert = reader->take<double>();
  config.limiter.min_diff = reader->take<double>();
  config.limiter.max_diff = reader->take<double>();
  config.amper.groups = reader->take<uint32_t>();
  config.amper.csp_ratio = reader->take<float>();
  const auto columns = reader->take<uint32_t>();
  for (uint32_t k = 0; k < columns && reader->ok(); ++k) {
    Column column;
    column.name = reader->take_text();
    column.dtype = static_cast<Dtype>(std::min<uint32_t>(reader->take<uint32_t>(), 255));
    const auto axes = reader->take<uint32_t>();
    for (uint32_t axis = 0; axis < axes && reader->ok(); ++axis)
      column.shape.push_back(reader->take<uint32_t>());
    config.columns.push_back(std::move(column));
  }
  return config;
}

}  // namespace accel_rl::replay::snapshot
