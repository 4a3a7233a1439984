#include "event_loop.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>

namespace accel_rl::replay {

namespace {

constexpr uint64_t sweep_ms = 250, last_words_ms = 1000, release_ms = 5000;
constexpr int most_events = 64;

uint64_t clock_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

}  // namespace

EventLoop::~EventLoop() {
  for (auto &each : connections_) {
    handler_->leave(*each.first, now_ms_);
    close(each.second->file);
  }
  if (event_ >= 0) close(event_);
  if (epoll_ >= 0) close(epoll_);
}

bool EventLoop::open(std::string *why) {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event wanted = {};
  wanted.events = EPOLLIN;
  wanted.data.ptr = &event_;
  if (epoll_ < 0 || event_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, event_, &wanted) != 0) {
    *why = std::string("cannot poll: ") + std::strerror(errno);
    return false;
  }
  return true;
}

bool EventLoop::add(Listener *listener, std::string *why) {
  epoll_event wanted = {};
  wanted.events = EPOLLIN;
  wanted.data.ptr = listener;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, listener->file(), &wanted) != 0) {
    *why = std::string("cannot poll: ") + std::strerror(errno);
    return false;
  }
  listeners_.push_back(listener);
  return true;
}

void EventLoop::wake() {
  const uint64_t one = 1;
  if (write(event_, &one, sizeof one) < 0) return;  // full: it is awake
}

void EventLoop::stop() {
  stopping_ = true;
  wake();
}

void EventLoop::run() {
  epoll_event events[most_events];
  const Handler::Deliver deliver = [this](Peer &peer, FrameBuffer &frame) {
    send_frame(*connections_.at(&peer), &frame);
  };
  now_ms_ = clock_ms();
  int wait = 0;
  while (!stopping_) {
    const int count = epoll_wait(epoll_, events, most_events, wait);
    const std::lock_guard<std::mutex> lock(mutex_);
    now_ms_ = clock_ms();
    try {
      turn(events, count, deliver);
    } catch (const std::exception &) {  // no memory now: what was not done is tried again
    }
    bury();
    wait = wait_ms();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto &each : connections_) end(*each.second, false);
  bury();
}

void EventLoop::turn(const epoll_event *events, int count, const Handler::Deliver &deliver) {
  for (int k = 0; k < count; ++k) {
    void *source = events[k].data.ptr;
    if (source == &event_) {
      uint64_t times;
      if (read(event_, &times, sizeof times) < 0) continue;
    } else if (std::find(listeners_.begin(), listeners_.end(), source) != listeners_.end()) {
      accept_from(*static_cast<Listener *>(source));
    } else {
      auto *connection = static_cast<Connection *>(source);
      if (connection->dead) continue;
      if (events[k].events & EPOLLOUT) flush(*connection);
      if (!connection->dead && events[k].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        receive(*connection);
    }
  }
  handler_->go_on(now_ms_, deliver);
  if (now_ms_ - swept_ms_ >= sweep_ms) sweep();
}

int EventLoop::wait_ms() const {
  if (handler_->pending()) return 0;
  uint64_t wait = sweep_ms;
  if (handler_->snapshots().active()) wait = 2;  // until the disk is done
  if (const uint64_t deadline = handler_->deadline_ms())
    wait = std::min(wait, deadline > now_ms_ ? deadline - now_ms_ : 0);
  return static_cast<int>(wait);
}

void EventLoop::accept_from(const Listener &listener) {
  for (;;) {
    const int file = accept4(listener.file(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (file < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        for (const Listener *each : listeners_)  // sweep() takes it up again
          epoll_ctl(epoll_, EPOLL_CTL_DEL, each->file(), nullptr);
        accepting_ = false;
      }
      return;
    }
    if (connections_.size() >= settings_.connections) {
      ++handler_->counters().turned_away;
      close(file);
      continue;
    }
    make_way();
    try {
      admit(file, listener);
    } catch (const std::bad_alloc &) {
      close(file);
    }
  }
}

void EventLoop::admit(int file, const Listener &listener) {
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
  if (listener.tls() && !(connection.tls = listener.tls()->accept(file))) throw std::bad_alloc();
  connection.opened_ms = connection.read_ms = now_ms_;
  connection.watched = EPOLLIN;
  dead_.reserve(connections_.size() + 1);  // so that end() needs no memory
  connections_.emplace(&connection.peer, std::move(made));
  epoll_event wanted = {};
  wanted.events = EPOLLIN;
  wanted.data.ptr = &connection;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &wanted) != 0) {
    connections_.erase(&connection.peer);
    close(file);
    return;
  }
  ++handler_->counters().connections;
  ++handler_->counters().open;
}

// Those that only open connections take the places of each other, not those of clients.
void EventLoop::make_way() {
  uint32_t count = 0;
  Connection *oldest = nullptr;
  for (auto &each : connections_) {
    Connection &connection = *each.second;
    const Peer::State state = connection.peer.state;
    if (connection.dead || (state != Peer::State::fresh && state != Peer::State::challenged))
      continue;
    ++count;
    if (!oldest || connection.opened_ms < oldest->opened_ms) oldest = &connection;
  }
  if (!oldest || count < settings_.handshakes) return;
  ++handler_->counters().turned_away;
  end(*oldest, false);
}

void EventLoop::sweep(Connection &connection) {
  Statistics &statistics = handler_->counters();
  const Peer::State state = connection.peer.state;
  const auto since = [this](uint64_t ms) { return now_ms_ - ms; };
  if (connection.last_words) {
    if (since(connection.opened_ms) >= last_words_ms) end(connection, false);
  } else if (state == Peer::State::closed) {  // its session went on over another one
    end(connection, false);
  } else if (state != Peer::State::ready && since(connection.opened_ms) >= settings_.handshake_ms) {
    ++statistics.timed_out;
    end(connection, false);
  } else if (connection.sent < connection.out.size()) {
    if (since(connection.write_ms) < settings_.write_ms) return;
    ++statistics.slow;
    end(connection, false);
  } else if ((connection.in.size() > 0 && since(connection.read_ms) >= settings_.frame_ms) ||
             (settings_.idle_ms > 0 && connection.peer.waiting == 0 &&
              since(connection.read_ms) >= settings_.idle_ms)) {
    ++statistics.timed_out;
    end(connection, false);
  } else if (connection.in.size() == 0 && since(connection.read_ms) >= release_ms) {
    release(connection);
  }
}

void EventLoop::sweep() {
  swept_ms_ = now_ms_;
  for (auto &each : connections_) sweep(*each.second);
  handler_->sweep(now_ms_);
  if (accepting_) return;
  accepting_ = true;
  std::vector<Listener *> again;
  again.swap(listeners_);
  std::string why;
  for (Listener *each : again) add(each, &why);
}

void EventLoop::bury() {
  for (Connection *each : dead_) {
    // A process that was forked meanwhile has the socket, too: close() alone would leave it open,
    // and epoll would go on to report what is freed here.
    epoll_ctl(epoll_, EPOLL_CTL_DEL, each->file, nullptr);
    shutdown(each->file, SHUT_RDWR);
    close(each->file);
    release(*each);
    unread_ -= each->counted;
    --handler_->counters().open;
    connections_.erase(&each->peer);
  }
  dead_.clear();
}

}  // namespace accel_rl::replay
