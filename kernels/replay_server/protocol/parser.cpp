#include "parser.hpp"

#include "../core/crc32c.hpp"

namespace accel_rl::replay {

namespace {

// Cursor over the sections of a frame. Sizes are products of at most two 32-bit numbers in 64 bits,
// and the cursor never passes the end of the frame, so no sum overflows. Sections begin at
// multiples of 64 bytes in memory aligned alike, so their pointers may be cast to the element type.
class Sections {
 public:
  explicit Sections(const Frame &frame) : frame_(frame) {}

  // The next section, of `count` times `each` bytes; null if the frame ends before.
  const uint8_t *take(uint64_t count, uint64_t each) {
    const uint64_t begin = aligned(end_), length = frame_.header.length;
    if (begin > length || (each > 0 && count > (length - begin) / each)) {
      good_ = false;
      return nullptr;
    }
    for (uint64_t at = end_; at < begin; ++at) good_ = good_ && frame_.bytes[at] == 0;
    end_ = begin + count * each;
    return frame_.bytes + begin;
  }

  // Whether all was there, padding was zero, and nothing follows.
  bool finished() const { return good_ && end_ == frame_.header.length; }

 private:
  const Frame &frame_;
  uint64_t end_ = body_offset;
  bool good_ = true;
};

// The only section: a name.
Status take_name(const Frame &frame, uint16_t bytes, std::string *out) {
  Sections sections(frame);
  const uint8_t *name = sections.take(bytes, 1);
  if (!sections.finished()) return Status::malformed;
  out->assign(reinterpret_cast<const char *>(name), bytes);
  return is_name(*out) ? Status::ok : Status::bad_name;
}

// Cursor over unaligned fields.
class Cursor {
 public:
  Cursor(const Frame &frame, size_t from)
      : at_(frame.bytes + from), left_(frame.header.length - from) {}

  bool has(size_t bytes) const { return bytes <= left_; }
  size_t left() const { return left_; }

  template <typename T>
  T take() {
    const T value = read_at<T>(at_);
    skip(sizeof value);
    return value;
  }

  std::string text(size_t bytes) {
    std::string value(reinterpret_cast<const char *>(at_), bytes);
    skip(bytes);
    return value;
  }

 private:
  void skip(size_t bytes) {
    at_ += bytes;
    left_ -= bytes;
  }

  const uint8_t *at_;
  size_t left_;
};

bool zero(const Frame &frame, size_t from, size_t to) {
  for (size_t at = from; at < to; ++at)
    if (frame.bytes[at] != 0) return false;
  return true;
}

}  // namespace

Status read_header(const uint8_t *bytes, uint32_t most, Header *header) {
  if (get(bytes, field::header::magic) != frame_magic) return Status::bad_magic;
  header->op = get(bytes, field::header::op);
  header->flags = get(bytes, field::header::flags);
  header->session = get(bytes, field::header::session);
  header->request = get(bytes, field::header::request);
  header->table = get(bytes, field::header::table);
  header->status = get(bytes, field::header::status);
  header->fragment = get(bytes, field::header::fragment);
  header->fragments = get(bytes, field::header::fragments);
  header->length = get(bytes, field::header::length);
  header->checksum = get(bytes, field::header::checksum);
  if (get(bytes, field::header::version) != frame_version) return Status::bad_protocol;
  if (header->length < body_offset) return Status::malformed;
  if (header->length > most) return Status::too_large;
  return Status::ok;
}

Status check_request(const Frame &frame) {
  const Header &header = frame.header;
  if (header.flags & flag_checked) {
    constexpr uint32_t none = 0;
    uint32_t sum = crc32c(frame.bytes, header_bytes - sizeof none);
    sum = crc32c(&none, sizeof none, sum);
    sum = crc32c(frame.bytes + header_bytes, header.length - header_bytes, sum);
    if (sum != header.checksum) return Status::bad_checksum;
  } else if (header.checksum != 0) {
    return Status::malformed;
  }
  if ((header.flags & ~known_flags) || (header.flags & flag_reply) || header.status != 0 ||
      header.fragment != 0 || header.fragments != 1)
    return Status::malformed;
  switch (static_cast<Op>(header.op)) {
    case Op::challenge:
    case Op::welcome:
    case Op::ack:
    case Op::reset:
    case Op::cookie:
      return Status::unknown_op;  // only replies, or only of datagrams
    default:
      return header.op == 0 || header.op > last_op ? Status::unknown_op : Status::ok;
  }
}

Status parse_hello(const Frame &frame, Hello *out) {
  if (frame.header.length != body_offset) return Status::malformed;
  *out = {get(frame.bytes, field::hello::resume), frame.bytes + field::hello::nonce.offset};
  return Status::ok;
}

Status parse_auth(const Frame &frame, const uint8_t **mac) {
  if (frame.header.length != body_offset + mac_bytes || !zero(frame, header_bytes, body_offset))
    return Status::malformed;
  *mac = frame.bytes + body_offset;
  return Status::ok;
}

Status parse_push(const Frame &frame, const Limits &limits, const std::vector<size_t> &column_bytes,
                  Push *out) {
  out->items = get(frame.bytes, field::push::items);
  out->timeout_ms = get(frame.bytes, field::push::timeout_ms);
  const uint32_t has_priorities = get(frame.bytes, field::push::has_priorities);
  if (has_priorities > 1 || !zero(frame, field::push::has_priorities.end(), body_offset))
    return Status::malformed;
  if (out->items == 0 || out->items > limits.batch || out->timeout_ms > limits.timeout_ms)
    return Status::bad_count;
  Sections sections(frame);
  out->priorities = has_priorities
                        ? reinterpret_cast<const float *>(sections.take(out->items, sizeof(float)))
                        : nullptr;
  out->columns.clear();
  for (const size_t bytes : column_bytes)
    out->columns.push_back(reinterpret_cast<const std::byte *>(sections.take(out->items, bytes)));
  return sections.finished() ? Status::ok : Status::malformed;
}

Status parse_sample(const Frame &frame, const Limits &limits, SampleRequest *out) {
  if (frame.header.length != body_offset ||
      !zero(frame, field::sample::timeout_ms.end(), body_offset))
    return Status::malformed;
  *out = {get(frame.bytes, field::sample::seed), get(frame.bytes, field::sample::batch),
          get(frame.bytes, field::sample::timeout_ms)};
  if (out->batch == 0 || out->batch > limits.batch || out->timeout_ms > limits.timeout_ms)
    return Status::bad_count;
  return Status::ok;
}

Status parse_update(const Frame &frame, const Limits &limits, Update *out) {
  out->items = get(frame.bytes, field::update::items);
  if (!zero(frame, field::update::items.end(), body_offset)) return Status::malformed;
  if (out->items == 0 || out->items > limits.batch) return Status::bad_count;
  Sections sections(frame);
  out->slots = reinterpret_cast<const uint32_t *>(sections.take(out->items, sizeof(uint32_t)));
  out->generations =
      reinterpret_cast<const uint32_t *>(sections.take(out->items, sizeof(uint32_t)));
  out->priorities = reinterpret_cast<const float *>(sections.take(out->items, sizeof(float)));
  return sections.finished() ? Status::ok : Status::malformed;
}

Status parse_publish(const Frame &frame, Publish *out) {
  out->version = get(frame.bytes, field::publish::version);
  out->bytes = get(frame.bytes, field::publish::value_bytes);
  const uint16_t name_bytes = get(frame.bytes, field::publish::name_bytes);
  if (!zero(frame, field::publish::name_bytes.end(), body_offset)) return Status::malformed;
  Sections sections(frame);
  const uint8_t *name = sections.take(name_bytes, 1);
  out->value = sections.take(out->bytes, 1);
  if (!sections.finished()) return Status::malformed;
  out->name.assign(reinterpret_cast<const char *>(name), name_bytes);
  return is_name(out->name) ? Status::ok : Status::bad_name;
}

Status parse_fetch(const Frame &frame, Fetch *out) {
  out->newer_than = get(frame.bytes, field::fetch::version);
  const uint16_t name_bytes = get(frame.bytes, field::fetch::name_bytes);
  const uint8_t any = get(frame.bytes, field::fetch::any);
  out->any = any;
  if (any > 1 || !zero(frame, field::fetch::any.end(), field::fetch::name_bytes.offset) ||
      !zero(frame, field::fetch::name_bytes.end(), body_offset))
    return Status::malformed;
  return take_name(frame, name_bytes, &out->name);
}

Status parse_remove(const Frame &frame, Remove *out) {
  const uint8_t message = get(frame.bytes, field::remove::message);
  const uint16_t name_bytes = get(frame.bytes, field::remove::name_bytes);
  out->message = message;
  if (message > 1 || !zero(frame, field::remove::message.end(), field::remove::name_bytes.offset) ||
      !zero(frame, field::remove::name_bytes.end(), body_offset))
    return Status::malformed;
  return take_name(frame, name_bytes, &out->name);
}

Status parse_next_table(const Frame &frame, uint16_t *from) {
  *from = get(frame.bytes, field::next_table::from);
  return frame.header.length == body_offset &&
                 zero(frame, field::next_table::from.end(), body_offset)
             ? Status::ok
             : Status::malformed;
}

Status parse_empty(const Frame &frame) {
  return frame.header.length == body_offset && zero(frame, header_bytes, body_offset)
             ? Status::ok
             : Status::malformed;
}

Status parse_open_table(const Frame &frame, OpenTable *out, std::string *why) {
  const uint8_t *fixed = frame.bytes;
  if (frame.header.length < names_offset) return Status::malformed;
  const uint16_t flags = get(fixed, field::open_table::flags);
  const uint8_t sampler = get(fixed, field::open_table::sampler);
  const uint8_t columns = get(fixed, field::open_table::columns);
  const uint8_t name_bytes = get(fixed, field::open_table::name_bytes);
  const uint8_t limited = get(fixed, field::open_table::limited);
  if (flags > (open_create | open_described) || limited > 1 ||
      !zero(frame, field::open_table::limited.end(), field::open_table::min_size.offset) ||
      sampler > static_cast<uint8_t>(Sampler::amper_fr))
    return Status::malformed;
  out->create = flags & open_create;
  out->described = flags & open_described;
  TableConfig &config = out->config;
  config.capacity = get(fixed, field::open_table::capacity);
  config.sampler = static_cast<Sampler>(sampler);
  config.priority_exponent = get(fixed, field::open_table::priority_exponent);
  config.limiter.min_size = get(fixed, field::open_table::min_size);
  config.limiter.active = limited;
  config.limiter.samples_per_insert = get(fixed, field::open_table::samples_per_insert);
  config.limiter.min_diff = get(fixed, field::open_table::min_diff);
  config.limiter.max_diff = get(fixed, field::open_table::max_diff);
  config.amper.groups = get(fixed, field::open_table::groups);
  config.amper.csp_ratio = get(fixed, field::open_table::csp_ratio);
  config.max_priority = get(fixed, field::open_table::max_priority);
  Cursor cursor(frame, names_offset);
  if (!cursor.has(name_bytes)) return Status::malformed;
  config.name = cursor.text(name_bytes);
  config.columns.clear();
  for (uint32_t k = 0; k < columns; ++k) {
    if (!cursor.has(3)) return Status::malformed;
    Column column;
    const uint8_t dtype = cursor.take<uint8_t>(), axes = cursor.take<uint8_t>();
    const uint8_t bytes = cursor.take<uint8_t>();
    if (!cursor.has(bytes + axes * sizeof(uint32_t))) return Status::malformed;
    if (dtype > static_cast<uint8_t>(Dtype::f8) || axes > most_axes) return Status::bad_config;
    column.dtype = static_cast<Dtype>(dtype);
    column.name = cursor.text(bytes);
    for (uint32_t axis = 0; axis < axes; ++axis) column.shape.push_back(cursor.take<uint32_t>());
    config.columns.push_back(std::move(column));
  }
  if (cursor.left() > 0) return Status::malformed;
  if (!is_name(config.name)) return Status::bad_name;
  return out->described ? check(config, why) : Status::ok;
}

}  // namespace accel_rl::replay
