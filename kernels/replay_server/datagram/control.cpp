#include "control.hpp"

#include "../core/crc32c.hpp"
#include "../protocol/parser.hpp"
#include "fragments.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint32_t no_checksum = 0;
constexpr size_t checksum_at = header_bytes - sizeof no_checksum;

void begin_control(Op op, uint64_t session, uint64_t request, uint16_t flags, uint8_t *out) {
  std::memset(out, 0, body_offset);
  write_at(out, frame_magic);
  out[4] = frame_version;
  out[5] = static_cast<uint8_t>(op);
  write_at<uint16_t>(out + 6, flags | flag_checked);
  write_at(out + 8, session);
  write_at(out + 16, request);
  write_at(out + 24, no_table);
  write_at<uint16_t>(out + 30, 1);
  write_at(out + 32, static_cast<uint32_t>(body_offset));
}

}  // namespace

Sound read_datagram(const uint8_t *bytes, size_t count, Header *header) {
  if (count <= header_bytes || count > most_datagram) return Sound::malformed;
  if (read_header(bytes, UINT32_MAX, header) != Status::ok || !(header->flags & flag_checked) ||
      (header->flags & ~known_flags))
    return Sound::malformed;
  uint32_t sum = crc32c(bytes, checksum_at);
  sum = crc32c(&no_checksum, sizeof no_checksum, sum);
  sum = crc32c(bytes + header_bytes, count - header_bytes, sum);
  return sum == header->checksum ? Sound::yes : Sound::bad_checksum;
}

void seal(const uint8_t *frame_header, uint16_t fragment, uint16_t fragments, const Part *parts,
          size_t count, uint8_t *out) {
  std::memcpy(out, frame_header, header_bytes);
  write_at<uint16_t>(out + 6, read_at<uint16_t>(out + 6) | flag_checked);
  write_at(out + 28, fragment);
  write_at(out + 30, fragments);
  write_at(out + checksum_at, no_checksum);
  uint32_t sum = crc32c(out, header_bytes);
  for (size_t k = 0; k < count; ++k) sum = crc32c(parts[k].bytes, parts[k].count, sum);
  write_at(out + checksum_at, sum);
}

void whole_header(uint8_t *header) {
  write_at<uint16_t>(header + 6, read_at<uint16_t>(header + 6) & ~flag_checked);
  write_at<uint16_t>(header + 28, 0);
  write_at<uint16_t>(header + 30, 1);
  write_at(header + checksum_at, no_checksum);
}

void write_ack(uint64_t session, uint64_t request, uint16_t flags, const Ack &ack, uint8_t *out) {
  begin_control(Op::ack, session, request, flags, out);
  out[40] = ack.complete;
  out[41] = ack.again;
  write_at(out + 42, static_cast<uint16_t>(ack.next));
  write_at(out + 44, ack.credit);
  write_at(out + 48, ack.beyond[0]);
  write_at(out + 56, ack.beyond[1]);
  write_at(out + checksum_at, crc32c(out, body_offset));
}

bool read_ack(const uint8_t *bytes, size_t count, Ack *out) {
  if (count != body_offset || bytes[40] > 1 || bytes[41] > 1) return false;
  out->complete = bytes[40];
  out->again = bytes[41];
  out->next = read_at<uint16_t>(bytes + 42);
  out->credit = read_at<uint32_t>(bytes + 44);
  out->beyond[0] = read_at<uint64_t>(bytes + 48);
  out->beyond[1] = read_at<uint64_t>(bytes + 56);
  return true;
}

void write_reset(const Header &to, uint8_t *out) {
  begin_control(Op::reset, to.session, to.request, flag_reply, out);
  write_at(out + checksum_at, crc32c(out, body_offset));
}

bool send_whole(Wire *wire, const Address &to, const uint8_t *bytes, size_t count) {
  const Part rest{bytes + header_bytes, count - header_bytes};
  return wire->send(to, bytes, &rest, 1);
}

}  // namespace accel_rl::replay
