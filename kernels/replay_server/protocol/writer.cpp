#include "writer.hpp"

#include <algorithm>

#include "../core/crc32c.hpp"
#include "parser.hpp"

namespace accel_rl::replay {

namespace {

template <typename T>
uint8_t *put(uint8_t *to, T value) {
  write_at(to, value);
  return to + sizeof value;
}

uint8_t *put_text(uint8_t *to, const std::string &text) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

}  // namespace

bool begin_reply(FrameBuffer *out, const Header &request, Op op, Status status,
                 const Layout &layout) {
  if (layout.length() > UINT32_MAX || !out->resize(static_cast<size_t>(layout.length())))
    return false;
  uint8_t *frame = out->data();
  std::memset(frame, 0, body_offset);
  set(frame, field::header::magic, frame_magic);
  set(frame, field::header::version, frame_version);
  set(frame, field::header::op, static_cast<uint8_t>(op));
  set(frame, field::header::flags, flag_reply | (request.flags & flag_checked));
  set(frame, field::header::session, request.session);
  set(frame, field::header::request, request.request);
  set(frame, field::header::table, request.table);
  set(frame, field::header::status, static_cast<uint16_t>(status));
  set(frame, field::header::fragments, 1);
  set(frame, field::header::length, static_cast<uint32_t>(layout.length()));
  for (const Layout::Gap &gap : layout.gaps())
    std::memset(frame + gap.begin, 0, gap.end - gap.begin);
  return true;
}

void finish_reply(FrameBuffer *out) {
  uint8_t *frame = out->data();
  if (!(get(frame, field::header::flags) & flag_checked)) return;
  set(frame, field::header::checksum, 0);
  set(frame, field::header::checksum, crc32c(frame, out->size()));
}

bool write_error(FrameBuffer *out, const Header &request, Status status, const std::string &why) {
  size_t bytes = std::min(why.size(), most_message_bytes);
  while (bytes > 0 && bytes < why.size() && (why[bytes] & 0xC0) == 0x80) --bytes;  // whole UTF-8
  Layout layout;
  const size_t at = layout.add(bytes, 1);
  if (!begin_reply(out, request, static_cast<Op>(request.op), status, layout)) return false;
  if (bytes > 0) std::memcpy(out->data() + at, why.data(), bytes);
  finish_reply(out);
  return true;
}

size_t description_bytes(const TableConfig &config) {
  size_t bytes = names_offset - body_offset + config.name.size();
  for (const Column &column : config.columns)
    bytes += 3 + column.name.size() + column.shape.size() * sizeof(uint32_t);
  return bytes;
}

void write_description(uint8_t *frame, const TableConfig &config) {
  set(frame, field::open_table::capacity, config.capacity);
  set(frame, field::open_table::sampler, static_cast<uint8_t>(config.sampler));
  set(frame, field::open_table::columns, static_cast<uint8_t>(config.columns.size()));
  set(frame, field::open_table::priority_exponent, config.priority_exponent);
  set(frame, field::open_table::name_bytes, static_cast<uint8_t>(config.name.size()));
  set(frame, field::open_table::limited, config.limiter.active);
  set(frame, field::open_table::min_size, config.limiter.min_size);
  set(frame, field::open_table::samples_per_insert, config.limiter.samples_per_insert);
  set(frame, field::open_table::min_diff, config.limiter.min_diff);
  set(frame, field::open_table::max_diff, config.limiter.max_diff);
  set(frame, field::open_table::groups, config.amper.groups);
  set(frame, field::open_table::csp_ratio, config.amper.csp_ratio);
  set(frame, field::open_table::max_priority, config.max_priority);
  uint8_t *to = put_text(frame + names_offset, config.name);
  for (const Column &column : config.columns) {
    to = put(to, static_cast<uint8_t>(column.dtype));
    to = put(to, static_cast<uint8_t>(column.shape.size()));
    to = put(to, static_cast<uint8_t>(column.name.size()));
    to = put_text(to, column.name);
    for (const uint32_t axis : column.shape) to = put(to, axis);
  }
}

}  // namespace accel_rl::replay
