// Requests, and a handler whose random bits are known, for tests of the protocol.

#ifndef ACCEL_RL_REPLAY_TESTS_FRAMES_HPP
#define ACCEL_RL_REPLAY_TESTS_FRAMES_HPP

#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "crc32c.hpp"
#include "handler.hpp"

namespace frames {

using namespace accel_rl::replay;

constexpr uint64_t first_token = 0x0807060504030201;

// Bytes 1, 2, ... 255 from one call to the next, then others that do not repeat.
inline Random counting() {
  return [next = 0, state = uint64_t{88172645463325252}](uint8_t *to, size_t bytes) mutable {
    for (size_t k = 0; k < bytes; ++k)
      to[k] = static_cast<uint8_t>(next < 255 ? ++next : random_bits(&state) >> 32);
    return true;
  };
}

inline Settings settings() {
  Settings made;
  made.random = counting();
  made.table_bytes = uint64_t{1} << 20;
  made.mailbox_bytes = 1 << 16;
  return made;
}

// A request as a client would build it; fields can be set before and after.
struct Request {
  FrameBuffer bytes;
  explicit Request(Op op, uint16_t table = no_table) {
    bytes.resize(body_offset);
    std::memset(bytes.data(), 0, body_offset);
    set(field::header::magic, frame_magic);
    set(field::header::version, frame_version);
    set(field::header::op, static_cast<uint8_t>(op));
    set(field::header::session, op == Op::hello || op == Op::auth ? 0 : first_token);
    set(field::header::table, table);
    set(field::header::fragments, 1);
    close();
  }

  template <typename T>
  Request &set(Field<T> field, typename Field<T>::Value value) {
    return at<T>(field.offset, value);
  }
  Request &session(uint64_t token) { return set(field::header::session, token); }
  Request &number(uint64_t request) { return set(field::header::request, request); }
  // A value that no field has.
  template <typename T>
  Request &at(size_t offset, T value) {
    write_at(bytes.data() + offset, value);
    return *this;
  }
  Request &section(const void *from, size_t count) {
    const size_t before = bytes.size(), begin = aligned(before);
    bytes.resize(begin + count);
    std::memset(bytes.data() + before, 0, begin - before);
    if (count > 0) std::memcpy(bytes.data() + begin, from, count);
    return close();
  }
  Request &close() { return set(field::header::length, static_cast<uint32_t>(bytes.size())); }
  Request &check() {
    set(field::header::flags, flag_checked);
    set(field::header::checksum, 0);
    return set(field::header::checksum, crc32c(bytes.data(), bytes.size()));
  }
};

// Whether a frame is one by its header, which is read as a transport would.
inline Status frame_of(const uint8_t *bytes, size_t size, uint32_t most, Frame *frame) {
  if (size < header_bytes) return Status::malformed;
  frame->bytes = bytes;
  const Status status = read_header(bytes, most, &frame->header);
  if (status != Status::ok) return status;
  return frame->header.length <= size ? Status::ok : Status::malformed;
}

// For a table of capacity items of one int32.
inline Request opening(uint32_t capacity, LimiterConfig limiter = {}, const char *name = "t") {
  TableConfig config;
  config.name = name, config.capacity = capacity, config.limiter = limiter;
  config.columns = {{"x", Dtype::i4, {}}};
  Request request(Op::open_table);
  request.bytes.resize(body_offset + description_bytes(config));
  std::memset(request.bytes.data() + header_bytes, 0, request.bytes.size() - header_bytes);
  write_description(request.bytes.data(), config);
  request.set(field::open_table::flags, open_create | open_described).close();
  return request;
}

// A handler, one peer, and the last reply.
struct Talk {
  Handler handler;
  Peer peer;
  FrameBuffer reply;
  Outcome outcome = Outcome::close;
  uint64_t now_ms = 1000;
  uint64_t next = 1;

  explicit Talk(Settings wanted = settings()) : handler(std::move(wanted)) {}
  ~Talk() { handler.disconnect(peer, now_ms); }

  // The status of the reply; malformed where there is none.
  Status send(Peer &from, const uint8_t *bytes, size_t size) {
    Frame frame;
    reply.clear();
    const Status status = frame_of(bytes, size, handler.most_bytes(from), &frame);
    outcome = status == Status::ok ? handler.handle(from, frame, &reply, now_ms)
                                   : handler.refuse(frame.header, status, &reply);
    while (outcome == Outcome::waits && !handler.snapshots().active() && handler.awaits_disk())
      handler.serve_waiting(now_ms, [&](Peer &, FrameBuffer &late) {  // a new table, for the log
        reply.swap(late), outcome = Outcome::reply;
      });
    if (outcome == Outcome::close || outcome == Outcome::waits) return Status::malformed;
    return static_cast<Status>(get(field::header::status));
  }
  Status send(Request &request) {
    request.number(next++);
    return send(peer, request.bytes.data(), request.bytes.size());
  }
  Status send(Request &&request) { return send(request); }
  Status hello() { return send(Request(Op::hello)); }

  template <typename T>
  T get(Field<T> field) const {
    return accel_rl::replay::get(reply.data(), field);
  }

  // A table of such items, which has number 0 if it is the first.
  Status open(uint32_t capacity, LimiterConfig limiter = {}, const char *name = "t") {
    return send(opening(capacity, limiter, name));
  }
};

inline Request push(const std::vector<int32_t> &items, const std::vector<float> &priorities = {},
                    uint32_t timeout_ms = 0) {
  Request request(Op::push, 0);
  request.set(field::push::items, static_cast<uint32_t>(items.size()));
  request.set(field::push::timeout_ms, timeout_ms);
  request.set(field::push::has_priorities, !priorities.empty());
  if (!priorities.empty()) request.section(priorities.data(), 4 * priorities.size());
  request.section(items.data(), 4 * items.size());
  return request;
}

inline Request sample(uint64_t seed, uint32_t batch, uint32_t timeout_ms = 0) {
  Request request(Op::sample, 0);
  request.set(field::sample::seed, seed).set(field::sample::batch, batch);
  request.set(field::sample::timeout_ms, timeout_ms);
  return request;
}

inline Request update(const std::vector<uint32_t> &slots, const std::vector<uint32_t> &generations,
                      const std::vector<float> &priorities) {
  Request request(Op::update, 0);
  request.set(field::update::items, static_cast<uint32_t>(slots.size()));
  request.section(slots.data(), 4 * slots.size());
  request.section(generations.data(), 4 * generations.size());
  request.section(priorities.data(), 4 * priorities.size());
  return request;
}

}  // namespace frames

#endif
