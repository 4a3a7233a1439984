// Requests and replies of a peer, each with its own number.

#include <algorithm>
#include <new>

#include "datagrams.hpp"

namespace accel_rl::replay {

namespace {

constexpr size_t first_bytes = size_t{128} << 10;  // of a request in pieces
constexpr size_t small_bytes = 4096;               // memory of a reply that is used again as it is

}  // namespace

void Datagrams::take_request(Remote &remote, const uint8_t *bytes, size_t count,
                             const Header &header) {
  Fragments fragments;
  if (!Fragments::infer(header, count - header_bytes, &fragments)) return malformed();
  Exchange &exchange = remote.at(header.request);
  const bool known = exchange.stage != Stage::none && exchange.request == header.request;
  if (known && exchange.stage == Stage::receiving)
    return take_fragment(remote, exchange, bytes, count, header);
  if (known && exchange.stage != Stage::lost) {
    ++counts_.duplicates;
    return resend(remote, exchange);
  }
  if (known || is_closed(remote)) return reset(remote.address, header, count);
  if (is_late(remote, header.request) || exchange.stage == Stage::waiting) {
    ++counts_.duplicates;  // it came late, or too many are on their way
    return;
  }
  if (exchange.stage == Stage::receiving) ++counts_.dropped_requests;
  release(remote, exchange);
  exchange.stage = Stage::none;
  exchange.request = header.request;
  remote.highest = std::max(remote.highest, header.request);
  if (header.length > handler_->most_bytes(remote)) {
    const Outcome outcome = handler_->refuse(header, Status::too_large, &reply_);
    return finish(remote, exchange, outcome, &reply_);
  }
  if (fragments.count == 1) return take_whole(remote, exchange, bytes, count);
  exchange.stage = Stage::receiving;
  exchange.begun_ms = now_ms_;
  exchange.fragments = fragments;
  exchange.received.begin(fragments.count);
  exchange.granted = fragments.window();
  exchange.acknowledged = 0;
  take_fragment(remote, exchange, bytes, count, header);
}

// Whether a number is so much older than the newest that nobody can be waiting for its reply.
bool Datagrams::is_late(const Remote &remote, uint64_t request) const {
  return remote.highest >= window && request <= remote.highest - window;
}

// A part of a request that is here already: the client does not know how far it is.
void Datagrams::resend(Remote &remote, Exchange &exchange) {
  if (exchange.stage == Stage::waiting) acknowledge(remote, exchange);
  if (exchange.stage != Stage::replied) return;
  ++counts_.retransmitted;  // the first is enough: it asks for others itself
  send_fragment(remote, exchange, 0);
}

void Datagrams::take_whole(Remote &remote, Exchange &exchange, const uint8_t *bytes, size_t count) {
  if (!whole_.resize(count)) return;
  std::memcpy(whole_.data(), bytes, count);
  handle(remote, exchange, whole_.data());
}

void Datagrams::take_fragment(Remote &remote, Exchange &exchange, const uint8_t *bytes,
                              size_t count, const Header &header) {
  const uint32_t fragment = header.fragment;
  const size_t size = count - header_bytes, offset = exchange.fragments.offset(fragment);
  Fragments fragments;
  uint8_t whole[header_bytes];
  std::memcpy(whole, bytes, header_bytes);
  restore_frame_header(whole);
  const bool first = exchange.frame.size() == 0;
  if (!Fragments::infer(header, size, &fragments) || !(fragments == exchange.fragments) ||
      (!first && std::memcmp(whole, exchange.frame.data(), header_bytes) != 0) ||
      fragment >= exchange.granted)
    return malformed();  // it contradicts the others, or had no credit
  if (!make_room(remote, exchange, offset + size)) {
    ++counts_.dropped_requests;
    release(remote, exchange);
    exchange.stage = Stage::none;
    if (write_error(&reply_, header, Status::limit, "the server has no room for the frame"))
      finish(remote, exchange, Outcome::reply, &reply_);
    return;
  }
  if (first) std::memcpy(exchange.frame.data(), whole, header_bytes);
  exchange.touched_ms = now_ms_;
  if (exchange.received.take(fragment) != Received::Take::fresh) {
    ++counts_.duplicates;
    return acknowledge(remote, exchange);
  }
  std::memcpy(exchange.frame.data() + offset, bytes + header_bytes, size);
  if (exchange.received.complete()) return handle(remote, exchange, exchange.frame.data());
  const uint32_t more = exchange.received.next() - exchange.acknowledged;
  const bool last = fragment + 1 == std::min<uint32_t>(fragments.count, exchange.granted);
  if (more >= (exchange.granted - exchange.acknowledged) / 4 || last) acknowledge(remote, exchange);
}

// Memory follows what came: a fragment is never more than the window beyond what is there.
bool Datagrams::make_room(Remote &remote, Exchange &exchange, size_t bytes) {
  FrameBuffer &frame = exchange.frame;
  if (bytes <= frame.size()) return true;
  const size_t length = exchange.fragments.length;
  const auto may_have = [&](uint64_t room) {
    const uint64_t more = room - exchange.counted;
    return remote.assembling + more <= settings_.peer_bytes &&
           assembling_ + more <= settings_.buffer_bytes;
  };
  // Not one that is far too large: all of it would count against the caps.
  if (frame.size() == 0 && frame.capacity() < bytes && spare_.capacity() >= bytes &&
      spare_.capacity() <= std::max(2 * aligned(length), first_bytes) &&
      may_have(spare_.capacity()))
    frame.swap(spare_);
  size_t room = frame.capacity();
  if (room < bytes) room = aligned(std::min(length, std::max({bytes, 2 * room, first_bytes})));
  const uint64_t more = room - exchange.counted;
  if (remote.assembling + more > settings_.peer_bytes) return false;
  while (assembling_ + more > settings_.buffer_bytes)
    if (!drop_slowest(exchange)) return false;
  if (!frame.resize(std::min(length, room))) return false;
  const uint64_t counted = frame.capacity();
  assembling_ += counted - exchange.counted;
  remote.assembling += counted - exchange.counted;
  exchange.counted = counted;
  return true;
}

// Give up the request that has been on its way longest; false if that is this one.
bool Datagrams::drop_slowest(const Exchange &but) {
  Remote *whose = nullptr;
  Exchange *slowest = nullptr;
  for (auto &each : remotes_) {
    if (each.second->assembling == 0) continue;
    for (Exchange &exchange : each.second->exchanges)
      if (exchange.stage == Stage::receiving && (!slowest || exchange.begun_ms < slowest->begun_ms))
        whose = each.second.get(), slowest = &exchange;
  }
  if (!slowest || slowest == &but) return false;
  ++counts_.dropped_requests;
  release(*whose, *slowest);
  slowest->stage = Stage::none;
  return true;
}

// A whole request, at an address as the handler wants it. What `remote` is may be gone afterwards.
void Datagrams::handle(Remote &remote, Exchange &exchange, uint8_t *bytes) {
  restore_frame_header(bytes);
  Frame frame{bytes, {}};
  Outcome outcome = Outcome::close;
  read_header(bytes, UINT32_MAX, &frame.header);
  try {
    outcome = handler_->handle(remote, frame, &reply_, now_ms_);
  } catch (const std::bad_alloc &) {  // the connection ends, as what was done is not known
  }
  release(remote, exchange);
  finish(remote, exchange, outcome, &reply_);
}

// Says how much of a request is here.
void Datagrams::acknowledge(Remote &remote, Exchange &exchange) {
  Ack ack;
  ack.complete = exchange.stage == Stage::waiting;
  if (!ack.complete) {
    const uint32_t next = exchange.received.next();
    exchange.granted =
        std::max(exchange.granted, next + exchange.fragments.window(wire_->inbox_bytes()));
    exchange.acknowledged = ack.next = next;
    ack.credit = exchange.granted;
    ack.beyond[0] = exchange.received.beyond(0);
    ack.beyond[1] = exchange.received.beyond(1);
  }
  write_ack(remote.token, exchange.request, flag_reply, ack, control_);
  if (send_whole(wire_, remote.address, control_, sizeof control_)) ++counts_.out;
}

void Datagrams::release(Remote &remote, Exchange &exchange) {
  const bool received = exchange.stage == Stage::receiving;
  (received ? assembling_ : kept_) -= exchange.counted;
  (received ? remote.assembling : remote.kept) -= exchange.counted;
  exchange.counted = 0;
  const bool used = !received || exchange.received.complete();
  if (used && exchange.frame.capacity() > std::max(spare_.capacity(), small_bytes)) {
    spare_.swap(exchange.frame);
    spare_.clear();
    spared_ms_ = now_ms_;
  }
  exchange.frame.clear();
  if (exchange.frame.capacity() > small_bytes) exchange.frame.release();
}

}  // namespace accel_rl::replay
