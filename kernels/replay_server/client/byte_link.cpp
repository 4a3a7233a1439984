#include "byte_link.hpp"

#include <algorithm>
#include <cstring>

#include "../protocol/parser.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint32_t most_slice_us = 50000;  // then the caller is asked whether to go on

}  // namespace

Fault ByteLink::Deadline::fault() {
  const auto now = Clock::now();
  if (!waits_) begin_ = asked_ = now;
  waits_ = true;
  const auto passed = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now - begin_).count());
  if (timeout_us_ > 0 && passed >= timeout_us_) return Fault::timed_out;
  left_us_ = timeout_us_ > 0 ? timeout_us_ - passed : most_slice_us;
  if (now - asked_ < std::chrono::microseconds(most_slice_us)) return Fault::none;
  asked_ = now;
  return !keep_waiting_ || keep_waiting_() ? Fault::none : Fault::interrupted;
}

uint32_t ByteLink::Deadline::slice_us() const {
  const uint64_t left = left_us_ > 0 ? left_us_ : timeout_us_;
  return left > 0 ? static_cast<uint32_t>(std::min<uint64_t>(left, most_slice_us)) : most_slice_us;
}

Fault ByteLink::put_all(const uint8_t *from, size_t count, Deadline *deadline) {
  while (count > 0) {
    const ssize_t done = put(from, count);
    if (done < 0) return Fault::closed;
    from += done, count -= static_cast<size_t>(done);
    if (done > 0) continue;
    if (const Fault fault = wait(true, deadline); fault != Fault::none) return fault;
  }
  return Fault::none;
}

// Read at least `wanted` bytes, and more if available.
Fault ByteLink::take_up_to(size_t wanted, uint8_t *to, size_t room, size_t *got,
                           Deadline *deadline) {
  while (*got < wanted) {
    const ssize_t done = take(to + *got, room - *got);
    if (done < 0) return Fault::closed;
    *got += static_cast<size_t>(done);
    if (done > 0) continue;
    if (const Fault fault = wait(false, deadline); fault != Fault::none) return fault;
  }
  return Fault::none;
}

Fault ByteLink::exchange(const Part *parts, size_t count, uint8_t *into, size_t room,
                         uint64_t timeout_us, const KeepWaiting &keep_waiting) {
  reply_ = nullptr, reply_bytes_ = 0;
  if (count == 0 || parts[0].count < header_bytes) return Fault::malformed;
  const auto request = get(parts[0].bytes, field::header::request);
  Deadline deadline(timeout_us, keep_waiting);
  for (size_t k = 0; k < count; ++k)
    if (const Fault fault = put_all(parts[k].bytes, parts[k].count, &deadline);
        fault != Fault::none)
      return fault;
  if (room < body_offset) {
    if (!memory_.resize(std::max(memory_.capacity(), size_t{4096}))) return Fault::no_memory;
    into = memory_.data(), room = memory_.capacity();
  }
  for (size_t got = 0;;) {
    Header header;
    if (const Fault fault = take_up_to(header_bytes, into, room, &got, &deadline);
        fault != Fault::none)
      return fault;
    if (read_header(into, frame_bytes_, &header) != Status::ok || !(header.flags & flag_reply))
      return Fault::malformed;
    const size_t length = header.length;
    if (length > room) {
      FrameBuffer larger;
      if (!larger.resize(length)) return Fault::no_memory;
      std::memcpy(larger.data(), into, got);
      memory_.swap(larger);
      into = memory_.data(), room = length;
    }
    if (const Fault fault = take_up_to(length, into, std::max(length, got), &got, &deadline);
        fault != Fault::none)
      return fault;
    if (header.request == request) {
      reply_ = into, reply_bytes_ = length;
      return got == length ? Fault::none : Fault::malformed;
    }
    got -= length;  // it was that of an earlier request
    std::memmove(into, into + length, got);
  }
}

}  // namespace accel_rl::replay
