// Replies of a peer, which are kept until the client has them.

#include <algorithm>

#include "datagrams.hpp"

namespace accel_rl::replay {

namespace {

constexpr size_t slack_bytes = 4096;  // memory beyond a reply's own that is kept with it
// Most that is sent in answer to one acknowledgement: other peers wait meanwhile.
constexpr size_t answer_bytes = size_t{512} << 10;

}  // namespace

void Datagrams::deliver(Peer &peer, FrameBuffer &frame) {
  auto &remote = static_cast<Remote &>(peer);
  const auto request = get(frame.data(), field::header::request);
  Exchange &exchange = remote.at(request);
  if (exchange.stage != Stage::waiting || exchange.request != request) return;
  finish(remote, exchange, Outcome::reply, &frame);
  wire_->flush();
}

// What the handler made of a request. After `close` there is no such peer any more.
void Datagrams::finish(Remote &remote, Exchange &exchange, Outcome outcome, FrameBuffer *reply) {
  if (outcome == Outcome::close) return remove(remote);
  if (outcome == Outcome::waits) {
    exchange.stage = Stage::waiting;
    return acknowledge(remote, exchange);
  }
  exchange.stage = Stage::lost;
  if (keep(remote, exchange, reply)) {
    exchange.stage = Stage::replied;
    exchange.sent = 0;
    send_below(remote, exchange, exchange.fragments.window());
  } else {
    ++counts_.dropped_replies;
  }
  if (outcome == Outcome::reply_and_close) disconnect(remote);
}

bool Datagrams::keep(Remote &remote, Exchange &exchange, FrameBuffer *reply) {
  const auto cut = [&] {
    return wire_->cut(remote.address, static_cast<uint32_t>(reply->size()), &exchange.fragments);
  };
  if (!cut()) {
    Header header;
    read_header(reply->data(), UINT32_MAX, &header);
    if (!write_error(reply, header, Status::limit, "the reply takes more than 65535 datagrams") ||
        !cut())
      return false;
  }
  // No copy, unless that would keep the memory of a far larger one.
  const bool swaps = reply->capacity() <= 2 * reply->size() + slack_bytes;
  if (!evict_replies(remote, exchange, swaps ? reply->capacity() : aligned(reply->size())))
    return false;
  if (swaps) {
    exchange.frame.swap(*reply);
    if (reply->capacity() < spare_.capacity()) reply->swap(spare_);
  } else if (!exchange.frame.append(reply->data(), reply->size())) {
    return false;
  }
  exchange.counted = exchange.frame.capacity();
  kept_ += exchange.counted;
  remote.kept += exchange.counted;
  return true;
}

// Whether so much more may be kept: older replies are given up for it, those of whoever has most.
bool Datagrams::evict_replies(Remote &remote, const Exchange &exchange, uint64_t bytes) {
  while (remote.kept + bytes > settings_.reply_bytes)
    if (!drop_oldest(remote, exchange)) return false;
  while (kept_ + bytes > settings_.unread_bytes) {
    Remote *most = nullptr;
    for (auto &each : remotes_)
      if (!most || each.second->kept > most->kept) most = each.second.get();
    if (!most || !drop_oldest(*most, exchange)) return false;
  }
  return true;
}

bool Datagrams::drop_oldest(Remote &remote, const Exchange &but) {
  Exchange *oldest = nullptr;
  for (Exchange &each : remote.exchanges)
    if (&each != &but && each.stage == Stage::replied &&
        (!oldest || each.request < oldest->request))
      oldest = &each;
  if (!oldest) return false;
  ++counts_.dropped_replies;
  release(remote, *oldest);
  oldest->stage = Stage::lost;
  return true;
}

// How much of a reply the client has.
void Datagrams::take_ack(Remote &remote, const uint8_t *bytes, size_t count, const Header &header) {
  Ack ack;
  if (!read_ack(bytes, count, &ack)) return malformed();
  Exchange &exchange = remote.at(header.request);
  const bool known = exchange.stage != Stage::none && exchange.request == header.request;
  if (ack.complete) {
    if (!known || exchange.stage != Stage::replied) return;
    // That of WELCOME has a number of HELLO's, which a request has again, and is of one fragment.
    const uint32_t fragments = exchange.fragments.count;
    if (fragments == 1 || ack.next != fragments) return;
    release(remote, exchange);
    exchange.stage = Stage::over;
    return;
  }
  if (!known || exchange.stage == Stage::lost) {
    if (!is_late(remote, header.request)) reset(remote.address, header, count);
    return;
  }
  if (exchange.stage == Stage::waiting || exchange.stage == Stage::receiving)
    return acknowledge(remote, exchange);
  if (exchange.stage != Stage::replied) return;
  const uint32_t sent = exchange.sent, most = exchange.fragments.window();
  if (ack.again) {
    uint32_t again = 0;
    for (uint32_t k = ack.next; k < sent && again < most; ++k) {
      if (ack.has(k)) continue;
      ++again;
      ++counts_.retransmitted;
      if (!send_fragment(remote, exchange, k)) return;
    }
  }
  const uint32_t beyond = exchange.fragments.window(answer_bytes);
  send_below(remote, exchange, std::min(ack.credit, ack.next + beyond));
}

void Datagrams::send_below(Remote &remote, Exchange &exchange, uint32_t fragment) {
  const uint32_t most = std::min<uint32_t>(fragment, exchange.fragments.count);
  for (; exchange.sent < most; ++exchange.sent)
    if (!send_fragment(remote, exchange, exchange.sent)) return;
}

bool Datagrams::send_fragment(Remote &remote, const Exchange &exchange, uint32_t fragment) {
  const Fragments &fragments = exchange.fragments;
  const uint8_t *frame = exchange.frame.data();
  const Part slice{frame + fragments.offset(fragment), fragments.bytes(fragment)};
  uint8_t header[header_bytes];
  write_fragment_header(frame, static_cast<uint16_t>(fragment), fragments.count, &slice, 1, header);
  if (!wire_->send(remote.address, header, &slice, 1)) return false;
  ++counts_.out;
  handler_->counters().bytes_out += header_bytes + slice.count;
  return true;
}

}  // namespace accel_rl::replay
