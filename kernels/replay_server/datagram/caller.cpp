#include "caller.hpp"

#include <algorithm>
#include <cstring>

#include "../core/crc32c.hpp"
#include "../protocol/parser.hpp"

namespace accel_rl::replay {

bool Caller::begin(const Part *parts, size_t count, uint8_t *into, size_t room, uint64_t now_us) {
  Header header;
  if (count == 0 || parts[0].count < body_offset ||
      read_header(parts[0].bytes, UINT32_MAX, &header) != Status::ok)
    return false;
  parts_.assign(parts, parts + count);
  cookie_ = 0;
  std::memcpy(header_, parts[0].bytes, header_bytes);
  restore_frame_header(header_);
  if (!cut()) return false;
  op_ = static_cast<Op>(header.op);
  const bool greets = op_ == Op::hello || op_ == Op::auth;
  numbered_ = greets && header.session == 0;
  session_ = numbered_ ? greeting_ : header.session;
  set(header_, field::header::session, session_);
  request_ = header.request;
  checked_ = header.flags & flag_checked;
  acked_ = {};
  acked_.credit = fragments_.window();
  sent_ = 0;
  retransmit_ = acknowledge_ = demand_ = false;
  into_ = into, room_ = room, reply_ = nullptr;
  reply_fragments_ = {};
  fault_ = Fault::none;
  stage_ = Stage::sending;
  clock_.begin(now_us);
  return true;
}

// Take the request's parts, as many fragments as they need.
bool Caller::cut() {
  body_.assign(parts_.data(), parts_.size(), header_bytes);
  const auto length = get(header_, field::header::length);
  return body_.size() == length - header_bytes && wire_->cut(server_, length, &fragments_);
}

// A server takes a HELLO again with a cookie behind it, from whoever got that one.
void Caller::take_cookie(const uint8_t *bytes, size_t count, uint64_t now_us) {
  const auto given = count == body_offset ? get(bytes, field::cookie::value) : uint64_t{0};
  if (stage_ != Stage::sending || given == cookie_) return;  // it came twice
  if (cookie_ == 0) {
    parts_.push_back({reinterpret_cast<const uint8_t *>(&cookie_), sizeof cookie_});
    set(header_, field::header::length,
        static_cast<uint32_t>(get(header_, field::header::length) + sizeof cookie_));
  }
  cookie_ = given;
  if (!cut()) return finish(Fault::malformed);
  sent_ = 0;
  clock_.begin(now_us);
}

// Whether it answers the request; a reply to HELLO or AUTH may name a session that is new.
bool Caller::expected(const Header &header) const {
  if (!(header.flags & flag_reply) || header.request != request_) return false;
  const Op op = static_cast<Op>(header.op);
  if (op == Op::ack || op == Op::reset) return header.session == session_;
  if (op == Op::cookie) return op_ == Op::hello && header.session == session_;
  if (op_ == Op::hello || op_ == Op::auth)
    return op == Op::welcome || op == op_ || (op == Op::challenge && op_ == Op::hello);
  return header.session == session_ && op == op_;
}

void Caller::receive(const uint8_t *bytes, size_t count, uint64_t now_us) {
  ++counts_.in;
  Header header;
  if (read_datagram(bytes, count, &header) != DatagramCheck::ok || !busy() || !expected(header)) {
    ++counts_.ignored;
    return;
  }
  if (header.op == static_cast<uint8_t>(Op::reset)) return finish(Fault::closed);
  if (header.op == static_cast<uint8_t>(Op::cookie)) return take_cookie(bytes, count, now_us);
  if (header.op != static_cast<uint8_t>(Op::ack))
    return take_fragment(bytes, count, header, now_us);
  Ack ack;
  if (read_ack(bytes, count, &ack)) take_ack(ack, now_us);
}

void Caller::take_ack(const Ack &ack, uint64_t now_us) {
  if (stage_ == Stage::receiving) return;  // it came late
  if (stage_ == Stage::waiting || ack.complete) {
    clock_.heard(now_us, stage_ == Stage::sending);
    stage_ = Stage::waiting;
    return;
  }
  const bool further = ack.next > acked_.next ||
                       (ack.next == acked_.next &&
                        (ack.beyond[0] & ~acked_.beyond[0] || ack.beyond[1] & ~acked_.beyond[1]));
  clock_.heard(now_us, further);
  if (!further) return;
  const uint32_t credit = std::max(acked_.credit, ack.credit);
  acked_ = ack;
  acked_.credit = credit;
  if ((ack.beyond[0] | ack.beyond[1]) && clock_.may_retransmit(now_us)) retransmit_ = true;
}

// The first fragment that comes says what the reply is like.
bool Caller::begin_reply(const uint8_t *bytes, const Fragments &fragments) {
  if (fragments.length > frame_bytes_) {
    finish(Fault::malformed);
    return false;
  }
  if (fragments.length <= room_) {
    reply_ = into_;
  } else if (own_.resize(fragments.length)) {
    reply_ = own_.data();
  } else {
    finish(Fault::no_memory);
    return false;
  }
  std::memcpy(first_, bytes, header_bytes);
  restore_frame_header(first_);
  std::memcpy(reply_, first_, header_bytes);
  if (numbered_ && get(reply_, field::header::session) == greeting_)
    set(reply_, field::header::session, uint64_t{0});
  reply_fragments_ = fragments;
  received_.begin(fragments.count);
  granted_ = fragments.window();
  acknowledged_ = 0;
  stage_ = Stage::receiving;
  return true;
}

void Caller::take_fragment(const uint8_t *bytes, size_t count, const Header &header,
                           uint64_t now_us) {
  Fragments fragments;
  const size_t size = count - header_bytes;
  if (!Fragments::infer(header, size, &fragments)) {
    ++counts_.ignored;
    return;
  }
  if (stage_ != Stage::receiving) {
    if (!begin_reply(bytes, fragments)) return;
  } else {
    uint8_t same[header_bytes];
    std::memcpy(same, bytes, header_bytes);
    restore_frame_header(same);
    if (!(fragments == reply_fragments_) || std::memcmp(same, first_, header_bytes) != 0) {
      ++counts_.ignored;
      return;
    }
  }
  const uint32_t fragment = header.fragment;
  const Received::Take taken = received_.take(fragment);
  clock_.heard(now_us, taken == Received::Take::fresh);
  if (taken != Received::Take::fresh) return;
  std::memcpy(reply_ + fragments.offset(fragment), bytes + header_bytes, size);
  if (received_.complete()) {
    // So that the server does not keep it for long, and knows that its session is used.
    acknowledge_ = fragments.count > 1 || header.op == static_cast<uint8_t>(Op::welcome);
    session_ = header.session;
    if (checked_) check_reply();
    return finish(Fault::none);
  }
  const bool last = fragment + 1 == std::min<uint32_t>(fragments.count, granted_);
  if (received_.next() - acknowledged_ >= (granted_ - acknowledged_) / 4 || last)
    acknowledge_ = true;
  if (received_.any_beyond() && acknowledge_ && clock_.may_retransmit(now_us)) demand_ = true;
}

// As a server does it for a stream, where the checksum is the whole frame's.
void Caller::check_reply() {
  set(reply_, field::header::flags, get(reply_, field::header::flags) | flag_checked);
  set(reply_, field::header::checksum, crc32c(reply_, reply_fragments_.length));
}

void Caller::pump(uint64_t now_us) {
  if (stage_ == Stage::sending) {
    if (retransmit_) {
      uint32_t highest = acked_.next;
      for (uint32_t k = acked_.next + 1; k < sent_ && k <= acked_.next + 128; ++k)
        if (acked_.has(k)) highest = k;
      send_again(highest, fragments_.window());
      retransmit_ = false;
    }
    const uint32_t most = std::min<uint32_t>(fragments_.count, acked_.credit);
    for (; sent_ < most; ++sent_)
      if (!send_fragment(sent_)) break;
  }
  if (acknowledge_ || demand_)
    request_ack(demand_);
  else if (busy() && now_us >= clock_.next_us())
    expire(now_us);
  wire_->flush();
}

void Caller::expire(uint64_t now_us) {
  if (!clock_.expire(now_us)) return finish(Fault::closed);
  if (stage_ != Stage::sending) return request_ack(true);
  constexpr uint32_t few = 8;  // the path may be congested
  if (acked_.next < sent_) return send_again(sent_, few);
  if (sent_ == 0) return;
  ++counts_.retransmitted;  // it has all that was sent: the last one again asks how far it is
  send_fragment(sent_ - 1);
}

bool Caller::send_fragment(uint32_t fragment) {
  uint8_t header[header_bytes];
  const size_t offset = fragments_.offset(fragment) - header_bytes;
  const std::vector<Part> &parts = body_.piece(offset, fragments_.bytes(fragment));
  write_fragment_header(header_, static_cast<uint16_t>(fragment), fragments_.count, parts.data(),
                        parts.size(), header);
  if (!wire_->send(server_, header, parts.data(), parts.size())) return false;
  ++counts_.out;
  return true;
}

// Retransmit up to `most` fragments below `below` that the server has not acknowledged.
void Caller::send_again(uint32_t below, uint32_t most) {
  for (uint32_t k = acked_.next; k < below && most > 0; ++k) {
    if (acked_.has(k)) continue;
    ++counts_.retransmitted;
    --most;
    if (!send_fragment(k)) return;
  }
}

// Say which fragments of the reply are here; `again`: those that are missing shall come again.
void Caller::request_ack(bool again) {
  Ack ack;
  ack.complete = stage_ == Stage::idle;
  ack.again = again && !ack.complete;
  if (stage_ == Stage::receiving || ack.complete) {
    ack.next = received_.next();
    granted_ = ack.credit = ack.next + reply_fragments_.window(wire_->inbox_bytes());
    acknowledged_ = ack.next;
    ack.beyond[0] = received_.beyond(0);
    ack.beyond[1] = received_.beyond(1);
  }
  if (ack.again) ++counts_.asked;
  acknowledge_ = demand_ = false;
  write_ack(session_, request_, 0, ack, control_);
  if (send_whole(wire_, server_, control_, sizeof control_)) ++counts_.out;
}

void Caller::finish(Fault fault) {
  fault_ = fault;
  stage_ = Stage::idle;
  if (fault != Fault::none) acknowledge_ = demand_ = false;
}

}  // namespace accel_rl::replay
