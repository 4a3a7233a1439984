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
  write_at(frame, frame_magic);
  frame[4] = frame_version;
  frame[5] = static_cast<uint8_t>(op);
  write_at<uint16_t>(frame + 6, flag_reply | (request.flags & flag_checked));
  write_at(frame + 8, request.session);
  write_at(frame + 16, request.request);
  write_at(frame + 24, request.table);
  write_at(frame + 26, static_cast<uint16_t>(status));
  write_at<uint16_t>(frame + 30, 1);
  write_at(frame + 32, static_cast<uint32_t>(layout.length()));
  for (const Layout::Gap &gap : layout.gaps())
    std::memset(frame + gap.begin, 0, gap.end - gap.begin);
  return true;
}

void finish_reply(FrameBuffer *out) {
  uint8_t *frame = out->data();
  if (!(read_at<uint16_t>(frame + 6) & flag_checked)) return;
  write_at<uint32_t>(frame + 36, 0);
  write_at(frame + 36, crc32c(frame, out->size()));
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
  write_at(frame + 40, config.capacity);
  frame[46] = static_cast<uint8_t>(config.sampler);
  frame[47] = static_cast<uint8_t>(config.columns.size());
  write_at(frame + 48, config.priority_exponent);
  frame[52] = static_cast<uint8_t>(config.name.size());
  frame[53] = config.limiter.active;
  write_at(frame + 56, config.limiter.min_size);
  write_at(frame + 64, config.limiter.samples_per_insert);
  write_at(frame + 72, config.limiter.min_diff);
  write_at(frame + 80, config.limiter.max_diff);
  write_at(frame + 88, config.amper.groups);
  write_at(frame + 92, config.amper.csp_ratio);
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
