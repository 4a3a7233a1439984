// What goes in and out of a connection.

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "../core/clock.hpp"
#include "event_loop.hpp"

namespace accel_rl::replay {

namespace {

constexpr size_t first_bytes = size_t{64} << 10;  // of a connection's buffer
constexpr size_t turn_bytes = size_t{1} << 20;    // received before others have their turn
constexpr size_t piece_bytes = size_t{1} << 20;   // sent between two looks at the clock
constexpr uint64_t turn_us = 1000;                // of work likewise; a request is not cut
constexpr size_t backpressure_bytes = size_t{256}
                                      << 10;  // of replies, before requests are left waiting

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

void EventLoop::release(Connection &connection) {
  buffered_ -= connection.in.capacity();
  connection.in.release();
}

// Release empty receive buffers of other connections.
void EventLoop::reclaim(const Connection &except) {
  for (auto &each : connections_) {
    Connection &other = *each.second;
    if (&other != &except && (other.in.size() == 0 || other.closed || other.closing))
      release(other);
  }
}

bool EventLoop::make_room(Connection &connection) {
  FrameBuffer &in = connection.in;
  if (in.capacity() > in.size()) return true;
  // Twice as much as came, whatever length a header claims: memory follows what was sent.
  size_t more = std::max(in.capacity(), first_bytes);
  const size_t most = aligned(handler_->most_bytes(connection.peer));  // no frame is longer
  if (in.capacity() < most) more = std::min(more, std::max(most - in.capacity(), first_bytes));
  if (!evict_slow_senders(connection, more) || !in.reserve(in.capacity() + more)) {
    refuse_frame(connection);
    return false;
  }
  buffered_ += more;
  return true;
}

// Make room for `more` received bytes: by empty buffers, then by those of the frame that has been
// on its way longest; false if that is this one. Who waits for a sample keeps the smallest buffer.
bool EventLoop::evict_slow_senders(const Connection &connection, size_t more) {
  if (buffered_ + more > settings_.buffer_bytes) reclaim(connection);
  while (buffered_ + more > settings_.buffer_bytes) {
    Connection *oldest = nullptr;
    for (auto &each : connections_) {
      Connection &other = *each.second;
      const bool waits = other.peer.sampling > 0 && other.in.capacity() <= first_bytes;
      if (other.in.size() == 0 || other.behind || waits) continue;
      if (!oldest || other.begun_ms < oldest->begun_ms) oldest = &other;
    }
    if (!oldest || oldest == &connection) return false;
    refuse_frame(*oldest);
  }
  return true;
}

// End a connection whose frame has no room, and say so.
void EventLoop::refuse_frame(Connection &connection) {
  ++handler_->counters().turned_away;
  Header header;
  if (connection.in.size() >= header_bytes) {
    read_header(connection.in.data(), UINT32_MAX, &header);
    if (write_error(&reply_, header, Status::limit, "the server has no room for the frame now"))
      send_frame(connection, &reply_);
  }
  disconnect(connection, true);
  release(connection);
}

// Read and discard input: the kernel would reset a connection closed with input unread, and the
// peer would lose the final reply.
void EventLoop::discard_input(Connection &connection) {
  uint8_t nowhere[16 << 10];
  for (size_t taken = 0; taken < turn_bytes;) {
    const ssize_t got = connection.stream->receive(nowhere, sizeof nowhere);
    if (got <= 0) {
      if (got == 0 || !would_block()) disconnect(connection, false);
      return;
    }
    taken += static_cast<size_t>(got);
    handler_->counters().bytes_in += static_cast<size_t>(got);
  }
}

bool EventLoop::turn_is_over() const { return clock_us() - turn_us_ > turn_us; }

void EventLoop::fall_behind(Connection &connection) {
  if (connection.behind) return;
  connection.behind = true;
  behind_.push_back(&connection);  // there is room: see admit()
}

void EventLoop::serve_behind(Connection &connection) {
  behind_.erase(std::find(behind_.begin(), behind_.end(), &connection));
  connection.behind = false;
  connection.read_ms = now_ms_;  // it is the server that is slow
  handle_frames(connection);
  receive(connection);
}

// After a reply that it may have waited for, with requests behind that one.
void EventLoop::resume(Connection &connection) {
  if (connection.closed || applies_backpressure(connection)) return;
  connection.read_ms = now_ms_;
  update_epoll(connection);
  if (connection.in.size() > 0 || connection.stream->holds()) fall_behind(connection);
}

void EventLoop::receive(Connection &connection) {
  for (size_t taken = 0; taken < turn_bytes || connection.stream->holds();) {
    if (connection.closed || connection.behind || applies_backpressure(connection)) return;
    if (connection.closing) return discard_input(connection);
    if (taken > 0 && turn_is_over()) {
      if (connection.stream->holds()) fall_behind(connection);  // which no event tells
      return;
    }
    FrameBuffer &in = connection.in;
    if (!make_room(connection)) return;
    const size_t before = in.size(), room = std::min(in.capacity() - before, turn_bytes);
    const ssize_t got = connection.stream->receive(in.data() + before, room);
    if (got <= 0) {
      if (got < 0 && would_block()) return;
      if (got < 0 && errno == EPROTO) ++handler_->counters().malformed;
      disconnect(connection, false);
      return;
    }
    const auto bytes = static_cast<size_t>(got);
    taken += bytes;
    handler_->counters().bytes_in += bytes;
    connection.read_ms = now_ms_;
    in.resize(before + bytes);
    if (before == 0) connection.begun_ms = now_ms_;
    handle_frames(connection);
    if (bytes < room && connection.stream->short_is_all()) return;
  }
}

bool EventLoop::applies_backpressure(const Connection &connection) const {
  return connection.peer.sampling > 0 ||
         connection.out.size() - connection.sent > backpressure_bytes;
}

void EventLoop::handle_frames(Connection &connection) {
  FrameBuffer &in = connection.in;
  size_t at = 0;
  while (in.size() - at >= header_bytes && !connection.closed && !connection.closing &&
         !applies_backpressure(connection)) {
    Frame frame{in.data() + at, {}};
    const uint32_t most = handler_->most_bytes(connection.peer);
    const Status status = read_header(frame.bytes, most, &frame.header);
    Outcome outcome;
    if (status != Status::ok) {
      outcome = handler_->refuse(frame.header, status, &reply_);
    } else {
      const size_t length = frame.header.length;
      if (in.size() - at < length) break;
      if (at > 0 && turn_is_over()) {
        fall_behind(connection);
        break;
      }
      if (at % section_align != 0) {  // sent before the reply to another one
        aligned_.clear();
        if (!aligned_.append(frame.bytes, length)) return disconnect(connection, false);
        frame.bytes = aligned_.data();
      }
      try {
        outcome = handler_->handle(connection.peer, frame, &reply_, now_ms_);
      } catch (const std::bad_alloc &) {
        outcome = Outcome::close;
      }
      at += length;
    }
    if (outcome == Outcome::reply || outcome == Outcome::reply_and_close)
      send_frame(connection, &reply_);
    if (outcome == Outcome::close || outcome == Outcome::reply_and_close)
      disconnect(connection, outcome == Outcome::reply_and_close);
    if (outcome == Outcome::waits) update_epoll(connection);
  }
  if (at > 0) connection.begun_ms = now_ms_;
  in.consume(at);
}

// Send from byte `sent` on what goes now and within the turn; false where the connection is broken.
bool EventLoop::send_pieces(Connection &connection, const FrameBuffer &frame, size_t *sent) {
  while (*sent < frame.size()) {
    const size_t piece = std::min(frame.size() - *sent, piece_bytes);
    const ssize_t put = connection.stream->send(frame.data() + *sent, piece);
    if (put < 0) return would_block();
    *sent += static_cast<size_t>(put);
    connection.write_ms = now_ms_;
    handler_->counters().bytes_out += static_cast<size_t>(put);
    if (turn_is_over()) break;
  }
  return true;
}

void EventLoop::send_frame(Connection &connection, FrameBuffer *frame) {
  if (connection.closed) return;
  size_t sent = 0;
  FrameBuffer &out = connection.out;
  if (out.size() == connection.sent) {
    if (!send_pieces(connection, *frame, &sent)) return disconnect(connection, false);
    if (sent == frame->size()) return;
    connection.write_ms = now_ms_;
  }
  if (keep(connection, frame, sent)) return update_epoll(connection);
  ++handler_->counters().slow;
  disconnect(connection, false);
}

// Queue the unsent rest of a frame; false above the limits.
bool EventLoop::keep(Connection &connection, FrameBuffer *frame, size_t sent) {
  FrameBuffer &out = connection.out;
  const size_t left = frame->size() - sent;
  const size_t unread = out.size() - connection.sent;
  if (unread + left > settings_.reply_bytes || !evict_slow_readers(connection, left)) return false;
  // No copy of a large reply, unless that would keep the memory of a far larger one.
  const bool swaps = unread == 0 && frame->capacity() <= 2 * left + backpressure_bytes;
  if (swaps) {
    out.clear();
    out.swap(*frame);
    connection.sent = sent;
  } else {
    if (connection.sent >= out.size() / 2) {  // or what was sent would stay for ever
      out.consume(connection.sent);
      connection.sent = 0;
    }
    if (!out.append(frame->data() + sent, left)) return false;
  }
  count_unread(connection);
  return true;
}

// Make room for `more` unread bytes by closing the connections that leave most unread; false if
// this one is the worst.
bool EventLoop::evict_slow_readers(const Connection &connection, size_t more) {
  while (unread_ + more > settings_.unread_bytes) {
    Connection *worst = nullptr;
    for (auto &each : connections_)
      if (!worst || each.second->counted > worst->counted) worst = each.second.get();
    if (!worst || worst->counted <= connection.counted + more) return false;
    ++handler_->counters().slow;
    disconnect(*worst, false);
    worst->out.release();
    worst->sent = 0;
    count_unread(*worst);
  }
  return true;
}

void EventLoop::count_unread(Connection &connection) {
  unread_ += connection.out.capacity();
  unread_ -= connection.counted;
  connection.counted = connection.out.capacity();
}

void EventLoop::flush(Connection &connection) {
  FrameBuffer &out = connection.out;
  if (applies_backpressure(connection))
    connection.read_ms = now_ms_;  // it could not send anything meanwhile
  if (!send_pieces(connection, out, &connection.sent)) return disconnect(connection, false);
  if (connection.sent == out.size()) {
    out.release();
    count_unread(connection);
    connection.sent = 0;
    if (connection.closing) connection.stream->end_sending();
  }
  if (!connection.closing && !applies_backpressure(connection)) {
    handle_frames(connection);
    if (connection.stream->holds()) receive(connection);
  }
  if (!connection.closed) update_epoll(connection);
}

void EventLoop::update_epoll(Connection &connection) {
  const bool writes = connection.sent < connection.out.size();
  const uint32_t events = (applies_backpressure(connection) ? 0u : uint32_t{EPOLLIN}) |
                          (writes ? uint32_t{EPOLLOUT} : 0u);
  if (events == connection.watched) return;
  connection.watched = events;
  if (connection.shared) return;  // poll() looks at it; its socket only says that it should
  epoll_event wanted = {};
  wanted.events = events;
  wanted.data.ptr = &connection;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.file, &wanted);
}

void EventLoop::disconnect(Connection &connection, bool flush_first) {
  if (connection.closed || (flush_first && connection.closing)) return;
  handler_->disconnect(connection.peer, now_ms_);
  if (flush_first) {
    // Closed at once with input unread, the kernel would drop the reply with the connection.
    connection.closing = true;
    connection.opened_ms = now_ms_;
    if (connection.sent == connection.out.size()) connection.stream->end_sending();
    return;
  }
  connection.closed = true;
  closed_.push_back(&connection);
}

}  // namespace accel_rl::replay
