// How connections begin, are watched over and end.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "event_loop.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint64_t closing_ms = 1000, release_ms = 5000;
constexpr uint32_t most_surplus = 64;

}  // namespace

void EventLoop::accept_from(const Listener &listener) {
  for (;;) {
    const int file = accept4(listener.file(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (file < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        for (const Listener *each : listeners_)  // close_idle() takes it up again
          epoll_ctl(epoll_, EPOLL_CTL_DEL, each->file(), nullptr);
        accepting_ = false;
      }
      return;
    }
    try {
      if (connections_.size() - surplus_ >= settings_.connections) {
        turn_away(file, listener);
        continue;
      }
      evict_half_open();
      admit(file, listener);
    } catch (const std::bad_alloc &) {
      ::close(file);
    }
  }
}

// Say that there is no room, as the reply to the HELLO that will come; only some are told at a
// time.
void EventLoop::turn_away(int file, const Listener &listener) {
  ++handler_->counters().turned_away;
  if (listener.tls() || listener.shares_memory() || surplus_ >= most_surplus) {
    ::close(file);
    return;
  }
  Connection *connection = admit(file, listener);
  if (!connection) return;
  connection->surplus = true;
  ++surplus_;
  Header header;
  header.op = static_cast<uint8_t>(Op::hello), header.request = 1;
  const std::string why = std::to_string(settings_.connections) + " connections are open";
  if (write_error(&reply_, header, Status::limit, why)) send_frame(*connection, &reply_);
  disconnect(*connection, true);
}

EventLoop::Connection *EventLoop::admit(int file, const Listener &listener) {
  if (listener.is_tcp()) {
    const auto set = [file](int level, int option, int value) {
      setsockopt(file, level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    // A peer whose machine is gone is found within 30 s, not in the two hours of the system.
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30000);
  }
  auto made = std::make_unique<Connection>();
  Connection &connection = *made;
  connection.file = file;
  if (!open_stream(connection, listener)) {
    ::close(file);
    return nullptr;
  }
  connection.opened_ms = connection.read_ms = now_ms_;
  connection.watched = EPOLLIN;
  closed_.reserve(connections_.size() + 1);  // so that disconnect() needs no memory
  shared_.reserve(connections_.size() + 1);
  behind_.reserve(connections_.size() + 1);
  connections_.emplace(&connection.peer, std::move(made));
  epoll_event wanted = {};
  wanted.events = EPOLLIN;
  wanted.data.ptr = &connection;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &wanted) != 0) {
    connections_.erase(&connection.peer);
    ::close(file);
    return nullptr;
  }
  if (connection.shared) {
    shared_.push_back(&connection);
    buffered_ += shared_bytes(settings_.ring_bytes);
  }
  ++handler_->counters().connections;
  ++handler_->counters().open;
  return &connection;
}

bool EventLoop::open_stream(Connection &connection, const Listener &listener) {
  if (listener.tls()) {
    connection.stream = listener.tls()->accept(connection.file);
    return connection.stream != nullptr;
  }
  if (!listener.shares_memory()) {
    connection.stream = std::make_unique<SocketStream>(connection.file);
    return true;
  }
  if (buffered_ + shared_bytes(settings_.ring_bytes) > settings_.buffer_bytes) reclaim(connection);
  if (buffered_ + shared_bytes(settings_.ring_bytes) > settings_.buffer_bytes) {
    ++handler_->counters().turned_away;
    return false;
  }
  auto shared = SharedStream::open(connection.file, settings_.ring_bytes);
  connection.shared = shared.get();
  connection.stream = std::move(shared);
  return connection.shared != nullptr;
}

// Evict the oldest connection without a session if there are too many, so that connections alone do
// not displace clients.
void EventLoop::evict_half_open() {
  uint32_t count = 0;
  Connection *oldest = nullptr;
  for (auto &each : connections_) {
    Connection &connection = *each.second;
    const Peer::State state = connection.peer.state;
    if (connection.closed || (state != Peer::State::fresh && state != Peer::State::challenged))
      continue;
    ++count;
    if (!oldest || connection.opened_ms < oldest->opened_ms) oldest = &connection;
  }
  if (!oldest || count < settings_.handshakes) return;
  ++handler_->counters().turned_away;
  disconnect(*oldest, false);
}

void EventLoop::close_idle(Connection &connection) {
  Statistics &statistics = handler_->counters();
  const Peer::State state = connection.peer.state;
  const auto since = [this](uint64_t ms) { return now_ms_ - ms; };
  if (connection.closing) {
    if (since(connection.opened_ms) >= closing_ms) disconnect(connection, false);
  } else if (state == Peer::State::closed) {  // its session went on over another one
    disconnect(connection, false);
  } else if (state != Peer::State::ready && since(connection.opened_ms) >= settings_.handshake_ms) {
    ++statistics.timed_out;
    disconnect(connection, false);
  } else if (connection.sent < connection.out.size()) {
    if (since(connection.write_ms) < settings_.write_ms) return;
    ++statistics.slow;
    disconnect(connection, false);
  } else if (connection.peer.sampling > 0) {
    return;  // it is the server that is slow
  } else if ((connection.in.size() > 0 &&
              (since(connection.read_ms) >= settings_.frame_ms ||
               since(connection.begun_ms) >=
                   most_frame_ms(settings_.frame_ms, connection.in.size()))) ||
             (settings_.idle_ms > 0 && connection.peer.waiting == 0 &&
              since(connection.read_ms) >= settings_.idle_ms)) {
    ++statistics.timed_out;
    disconnect(connection, false);
  } else if (connection.in.size() == 0 && since(connection.read_ms) >= release_ms) {
    release(connection);
  }
}

void EventLoop::close_idle() {
  idle_checked_ms_ = now_ms_;
  for (auto &each : connections_) close_idle(*each.second);
  for (Transport *each : transports_) each->close_idle(now_ms_);
  handler_->expire_unused(now_ms_);
  if (accepting_) return;
  accepting_ = true;
  std::vector<Listener *> again;
  again.swap(listeners_);
  std::string why;
  for (Listener *each : again) add(each, &why);
}

void EventLoop::free_closed() {
  for (Connection *each : closed_) {
    // A process that was forked meanwhile has the socket, too: close() alone would leave it open,
    // and epoll would go on to report what is freed here.
    epoll_ctl(epoll_, EPOLL_CTL_DEL, each->file, nullptr);
    shutdown(each->file, SHUT_RDWR);
    ::close(each->file);
    release(*each);
    unread_ -= each->counted;
    if (each->behind) behind_.erase(std::find(behind_.begin(), behind_.end(), each));
    if (each->shared) {
      shared_.erase(std::find(shared_.begin(), shared_.end(), each));
      buffered_ -= shared_bytes(settings_.ring_bytes);
    }
    surplus_ -= each->surplus;
    --handler_->counters().open;
    connections_.erase(&each->peer);
  }
  closed_.clear();
}

}  // namespace accel_rl::replay
