#include "control.hpp"

#include "../core/crc32c.hpp"
#include "../protocol/parser.hpp"
#include "fragments.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint32_t no_checksum = 0;

void begin_control(Op op, uint64_t session, uint64_t request, uint16_t flags, uint8_t *out) {
  std::memset(out, 0, body_offset);
  set(out, field::header::magic, frame_magic);
  set(out, field::header::version, frame_version);
  set(out, field::header::op, static_cast<uint8_t>(op));
  set(out, field::header::flags, flags | flag_checked);
  set(out, field::header::session, session);
  set(out, field::header::request, request);
  set(out, field::header::table, no_table);
  set(out, field::header::fragments, 1);
  set(out, field::header::length, static_cast<uint32_t>(body_offset));
}

}  // namespace

DatagramCheck read_datagram(const uint8_t *bytes, size_t count, Header *header) {
  if (count <= header_bytes || count > most_datagram) return DatagramCheck::malformed;
  if (read_header(bytes, UINT32_MAX, header) != Status::ok || !(header->flags & flag_checked) ||
      (header->flags & ~known_flags))
    return DatagramCheck::malformed;
  uint32_t sum = crc32c(bytes, field::header::checksum.offset);
  sum = crc32c(&no_checksum, sizeof no_checksum, sum);
  sum = crc32c(bytes + header_bytes, count - header_bytes, sum);
  return sum == header->checksum ? DatagramCheck::ok : DatagramCheck::bad_checksum;
}

void write_fragment_header(const uint8_t *frame_header, uint16_t fragment, uint16_t fragments,
                           const Part *parts, size_t count, uint8_t *out) {
  std::memcpy(out, frame_header, header_bytes);
  set(out, field::header::flags, get(out, field::header::flags) | flag_checked);
  set(out, field::header::fragment, fragment);
  set(out, field::header::fragments, fragments);
  set(out, field::header::checksum, no_checksum);
  uint32_t sum = crc32c(out, header_bytes);
  for (size_t k = 0; k < count; ++k) sum = crc32c(parts[k].bytes, parts[k].count, sum);
  set(out, field::header::checksum, sum);
}

void restore_frame_header(uint8_t *header) {
  set(header, field::header::flags, get(header, field::header::flags) & ~flag_checked);
  set(header, field::header::fragment, 0);
  set(header, field::header::fragments, 1);
  set(header, field::header::checksum, no_checksum);
}

void write_ack(uint64_t session, uint64_t request, uint16_t flags, const Ack &ack, uint8_t *out) {
  begin_control(Op::ack, session, request, flags, out);
  set(out, field::ack::complete, ack.complete);
  set(out, field::ack::again, ack.again);
  set(out, field::ack::next, static_cast<uint16_t>(ack.next));
  set(out, field::ack::credit, ack.credit);
  set(out, field::ack::beyond_low, ack.beyond[0]);
  set(out, field::ack::beyond_high, ack.beyond[1]);
  set(out, field::header::checksum, crc32c(out, body_offset));
}

bool read_ack(const uint8_t *bytes, size_t count, Ack *out) {
  if (count != body_offset) return false;
  const uint8_t complete = get(bytes, field::ack::complete);
  const uint8_t again = get(bytes, field::ack::again);
  if (complete > 1 || again > 1) return false;
  out->complete = complete;
  out->again = again;
  out->next = get(bytes, field::ack::next);
  out->credit = get(bytes, field::ack::credit);
  out->beyond[0] = get(bytes, field::ack::beyond_low);
  out->beyond[1] = get(bytes, field::ack::beyond_high);
  return true;
}

void write_reset(const Header &to, uint8_t *out) {
  begin_control(Op::reset, to.session, to.request, flag_reply, out);
  set(out, field::header::checksum, crc32c(out, body_offset));
}

void write_cookie(const Header &to, uint64_t cookie, uint8_t *out) {
  begin_control(Op::cookie, to.session, to.request, flag_reply, out);
  set(out, field::cookie::value, cookie);
  set(out, field::header::checksum, crc32c(out, body_offset));
}

bool send_whole(Wire *wire, const Address &to, const uint8_t *bytes, size_t count) {
  const Part rest{bytes + header_bytes, count - header_bytes};
  return wire->send(to, bytes, &rest, 1);
}

}  // namespace accel_rl::replay
