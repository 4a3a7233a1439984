// What goes in and out of a connection.

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "event_loop.hpp"

namespace accel_rl::replay {

namespace {

constexpr size_t first_bytes = size_t{64} << 10;    // of a connection's buffer
constexpr size_t turn_bytes = size_t{1} << 20;      // received before others have their turn
constexpr size_t unread_bytes = size_t{256} << 10;  // of replies, before requests are left waiting

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

bool EventLoop::make_room(Connection &connection) {
  FrameBuffer &in = connection.in;
  if (in.capacity() > in.size()) return true;
  // Twice as much as came, whatever length a header claims: memory follows what was sent.
  const size_t more = std::max(in.capacity(), first_bytes);
  if (buffered_ + more > settings_.buffer_bytes || !in.reserve(in.capacity() + more)) {
    Header header;
    if (in.size() >= header_bytes) {
      read_header(in.data(), UINT32_MAX, &header);
      if (write_error(&reply_, header, Status::limit, "the server has no room for the frame"))
        send_frame(connection, &reply_);
    }
    end(connection, true);
    return false;
  }
  buffered_ += more;
  return true;
}

void EventLoop::receive(Connection &connection) {
  for (size_t taken = 0; taken < turn_bytes;) {
    if (connection.dead || paused(connection)) return;
    FrameBuffer &in = connection.in;
    if (connection.last_words) in.clear();  // read, so that the peer is not cut off
    if (!make_room(connection)) return;
    const size_t before = in.size(), room = in.capacity() - before;
    const ssize_t got = recv(connection.file, in.data() + before, room, 0);
    if (got <= 0) {
      if (got < 0 && would_block()) return;
      end(connection, false);
      return;
    }
    const auto bytes = static_cast<size_t>(got);
    taken += bytes;
    handler_->counters().bytes_in += bytes;
    connection.read_ms = now_ms_;
    in.resize(before + bytes);
    if (!connection.last_words) handle_frames(connection);
    if (bytes < room) return;
  }
}

bool EventLoop::paused(const Connection &connection) const {
  return connection.out.size() - connection.sent > unread_bytes;
}

void EventLoop::handle_frames(Connection &connection) {
  FrameBuffer &in = connection.in;
  size_t at = 0;
  while (in.size() - at >= header_bytes && !connection.dead && !connection.last_words &&
         !paused(connection)) {
    Frame frame{in.data() + at, {}};
    const uint32_t most = handler_->most_bytes(connection.peer);
    const Status status = read_header(frame.bytes, most, &frame.header);
    Outcome outcome;
    if (status != Status::ok) {
      outcome = handler_->refuse(frame.header, status, &reply_);
    } else {
      const size_t length = frame.header.length;
      if (in.size() - at < length) break;
      if (at % section_align != 0) {  // sent before the reply to another one
        aligned_.clear();
        if (!aligned_.append(frame.bytes, length)) return end(connection, false);
        frame.bytes = aligned_.data();
      }
      outcome = handler_->handle(connection.peer, frame, &reply_, now_ms_);
      at += length;
    }
    if (outcome == Outcome::reply || outcome == Outcome::reply_and_close)
      send_frame(connection, &reply_);
    if (outcome == Outcome::close || outcome == Outcome::reply_and_close)
      end(connection, outcome == Outcome::reply_and_close);
  }
  in.consume(at);
}

void EventLoop::send_frame(Connection &connection, FrameBuffer *frame) {
  if (connection.dead) return;
  size_t sent = 0;
  FrameBuffer &out = connection.out;
  if (out.size() == connection.sent) {
    const ssize_t put = send(connection.file, frame->data(), frame->size(), MSG_NOSIGNAL);
    if (put < 0 && !would_block()) return end(connection, false);
    sent = put < 0 ? 0 : static_cast<size_t>(put);
    handler_->counters().bytes_out += sent;
    if (sent == frame->size()) return;
    connection.write_ms = now_ms_;
    out.clear();
    out.swap(*frame);  // no copy of a large reply
    connection.sent = sent;
  } else if (out.size() - connection.sent + frame->size() > settings_.reply_bytes ||
             !out.append(frame->data(), frame->size())) {
    ++handler_->counters().slow;
    return end(connection, false);
  }
  watch(connection);
}

void EventLoop::flush(Connection &connection) {
  FrameBuffer &out = connection.out;
  while (connection.sent < out.size()) {
    const ssize_t put = send(connection.file, out.data() + connection.sent,
                             out.size() - connection.sent, MSG_NOSIGNAL);
    if (put < 0) {
      if (!would_block()) return end(connection, false);
      break;
    }
    connection.sent += static_cast<size_t>(put);
    connection.write_ms = now_ms_;
    handler_->counters().bytes_out += static_cast<size_t>(put);
  }
  if (connection.sent == out.size()) {
    out.release();
    connection.sent = 0;
    if (connection.last_words) shutdown(connection.file, SHUT_WR);
  }
  if (!connection.last_words && !paused(connection)) handle_frames(connection);
  if (!connection.dead) watch(connection);
}

void EventLoop::watch(Connection &connection) {
  const bool writes = connection.sent < connection.out.size();
  const uint32_t events = (paused(connection) ? 0u : uint32_t{EPOLLIN}) |
                          (writes ? uint32_t{EPOLLOUT} : 0u);
  if (events == connection.watched) return;
  epoll_event wanted = {};
  wanted.events = connection.watched = events;
  wanted.data.ptr = &connection;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.file, &wanted);
}

void EventLoop::end(Connection &connection, bool with_last_words) {
  if (connection.dead) return;
  handler_->leave(connection.peer, now_ms_);
  if (with_last_words) {
    // Closed at once with input unread, the kernel would drop the reply with the connection.
    connection.last_words = true;
    connection.opened_ms = now_ms_;
    if (connection.sent == connection.out.size()) shutdown(connection.file, SHUT_WR);
    return;
  }
  connection.dead = true;
  dead_.push_back(&connection);
}

}  // namespace accel_rl::replay
