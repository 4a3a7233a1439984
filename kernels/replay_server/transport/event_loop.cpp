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
    bury();
    wait = wait_ms();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto &each : connections_) end(*each.second, false);
  bury();
}

int EventLoop::wait_ms() const {
  if (handler_->snapshots().writing()) return 0;
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
    Statistics &statistics = handler_->counters();
    if (connections_.size() >= settings_.connections) {
      ++statistics.turned_away;
      close(file);
      continue;
    }
    if (listener.is_tcp()) {
      const int on = 1;
      setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    auto connection = std::make_unique<Connection>();
    connection->file = file;
    connection->opened_ms = connection->read_ms = now_ms_;
    epoll_event wanted = {};
    wanted.events = connection->watched = EPOLLIN;
    wanted.data.ptr = connection.get();
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &wanted) != 0) {
      close(file);
      continue;
    }
    ++statistics.connections;
    ++statistics.open;
    Peer *peer = &connection->peer;
    connections_.emplace(peer, std::move(connection));
  }
}

void EventLoop::sweep() {
  swept_ms_ = now_ms_;
  Statistics &statistics = handler_->counters();
  for (auto &each : connections_) {
    Connection &connection = *each.second;
    const Peer::State state = connection.peer.state;
    const bool writes = connection.sent < connection.out.size();
    if (connection.last_words) {
      if (now_ms_ - connection.opened_ms >= last_words_ms) end(connection, false);
    } else if (state == Peer::State::closed) {  // its session went on over another one
      end(connection, false);
    } else if (writes) {
      if (now_ms_ - connection.write_ms < settings_.write_ms) continue;
      ++statistics.slow;
      end(connection, false);
    } else if ((state != Peer::State::ready &&
                now_ms_ - connection.opened_ms >= settings_.handshake_ms) ||
               (connection.in.size() > 0 && now_ms_ - connection.read_ms >= settings_.frame_ms) ||
               (settings_.idle_ms > 0 && connection.peer.waiting == 0 &&
                now_ms_ - connection.read_ms >= settings_.idle_ms)) {
      ++statistics.timed_out;
      end(connection, false);
    } else if (connection.in.size() == 0 && now_ms_ - connection.read_ms >= release_ms) {
      buffered_ -= connection.in.capacity();
      connection.in.release();
    }
  }
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
    close(each->file);
    buffered_ -= each->in.capacity();
    --handler_->counters().open;
    connections_.erase(&each->peer);
  }
  dead_.clear();
}

}  // namespace accel_rl::replay
