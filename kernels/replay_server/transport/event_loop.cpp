#include "event_loop.hpp"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "../core/clock.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint64_t idle_check_ms = 250;
constexpr int most_events = 256;
constexpr uint32_t turns_per_look = 8;  // at sockets, by a loop that polls transports all the time
constexpr int most_yields = 64;         // for others who want the handler
constexpr uint64_t loop_us = 1000;      // for connections, in a turn of the loop

}  // namespace

EventLoop::~EventLoop() {
  close();
  if (event_ >= 0) ::close(event_);
  if (epoll_ >= 0) ::close(epoll_);
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
  if (listener->shares_memory() && !is_ring_size(settings_.ring_bytes)) {
    *why = "ring_bytes must be a power of two from " + std::to_string(least_ring_bytes) + " to " +
           std::to_string(most_ring_bytes) + ", got " + std::to_string(settings_.ring_bytes);
    return false;
  }
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

bool EventLoop::add(Transport *transport, std::string *why) {
  if (transport->file() < 0 && settings_.idle == Idle::block) {
    *why = "idle must be spin, yield or sleep: nothing would wake a server that blocks";
    return false;
  }
  epoll_event wanted = {};
  wanted.events = EPOLLIN;
  wanted.data.ptr = transport;
  if (transport->file() >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, transport->file(), &wanted) != 0) {
    *why = std::string("cannot poll: ") + std::strerror(errno);
    return false;
  }
  transports_.push_back(transport);
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
    if (peer.transport) return peer.transport->deliver(peer, frame);
    Connection &connection = *connections_.at(&peer);
    turn_us_ = clock_us();
    send_frame(connection, &frame);
    resume(connection);
  };
  now_ms_ = clock_ms();
  int wait = 0;
  while (!stopping_) {
    const int count = wait_for_events(events, wait);
    yield_to_waiters();
    const std::lock_guard<std::mutex> lock(mutex_);
    now_ms_ = clock_ms();
    disarm_wakeup();
    bool busy = true;
    try {
      busy = run_once(events, count, deliver);
    } catch (const std::exception &) {  // no memory now: what was not done is tried again
    }
    free_closed();
    wait = busy ? 0 : wait_ms();
    if (wait > 0 && settings_.idle == Idle::block && !arm_wakeup()) wait = 0;
  }
  close();
}

void EventLoop::close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  now_ms_ = clock_ms();
  for (Transport *each : transports_) each->close(now_ms_);
  transports_.clear();
  for (auto &each : connections_) disconnect(*each.second, false);
  free_closed();
}

// Collect socket events, after waiting as the idle policy says.
int EventLoop::wait_for_events(epoll_event *events, int wait) {
  if (settings_.idle == Idle::block) {
    int count = 0;
    // A wake-up by the kernel takes longer than a client needs to send its next request.
    if (wait > 0 && served_) {
      const uint64_t wait_us = static_cast<uint64_t>(wait) * 1000;
      const uint64_t most_us = std::min<uint64_t>(settings_.linger_us, wait_us);
      count = busy_poll(events, most_us);
      wait -= static_cast<int>(most_us / 1000);
    }
    if (count == 0) count = epoll_wait(epoll_, events, most_events, wait);
    served_ = count > 0;
    return count;
  }
  if (wait > 0 && settings_.idle == Idle::yield) sched_yield();
  if (wait > 0 && settings_.idle == Idle::sleep) {
    const timespec pause = {settings_.sleep_us / 1000000, settings_.sleep_us % 1000000 * 1000};
    nanosleep(&pause, nullptr);
  }
  const bool polls = settings_.idle != Idle::sleep && !(transports_.empty() && shared_.empty());
  if (polls && ++turns_ % turns_per_look != 0) return 0;
  return epoll_wait(epoll_, events, most_events, 0);
}

int EventLoop::busy_poll(epoll_event *events, uint64_t most_us) const {
  const uint64_t until = clock_us() + most_us;
  while (clock_us() < until) {
    const int count = epoll_wait(epoll_, events, most_events, 0);
    if (count != 0) return count;
    sched_yield();  // clients may share this core
  }
  return 0;
}

void EventLoop::yield_to_waiters() const {
  for (int k = 0; k < most_yields && waiters_ > 0; ++k) sched_yield();
}

bool EventLoop::arm_wakeup() {
  armed_ = true;  // set first: a partly armed loop is disarmed as well
  bool all = true;
  for (Transport *each : transports_) all = each->arm_wakeup() && all;
  for (Connection *each : shared_) {
    const uint32_t wants = (each->watched & EPOLLIN ? uint32_t{wants_bytes} : 0u) |
                           (each->watched & EPOLLOUT ? uint32_t{wants_room} : 0u);
    all = each->shared->arm_wakeup(wants) && all;
  }
  return all;
}

void EventLoop::disarm_wakeup() {
  if (!armed_) return;
  armed_ = false;
  for (Transport *each : transports_) each->disarm_wakeup();
  for (Connection *each : shared_) each->shared->disarm_wakeup();
}

// One turn of the loop. Returns true if more work may be ready; with Idle::block epoll reports that
// of sockets.
bool EventLoop::run_once(const epoll_event *events, int count, const Handler::Deliver &deliver) {
  bool busy = count > 0 && settings_.idle != Idle::block;
  ready_.clear();
  for (int k = 0; k < count; ++k) {
    void *source = events[k].data.ptr;
    if (source == &event_) {
      uint64_t times;
      if (read(event_, &times, sizeof times) < 0) continue;
    } else if (std::find(listeners_.begin(), listeners_.end(), source) != listeners_.end()) {
      accept_from(*static_cast<Listener *>(source));
    } else if (std::find(transports_.begin(), transports_.end(), source) == transports_.end()) {
      auto *connection = static_cast<Connection *>(source);
      if (connection->closed) continue;
      if (connection->shared)
        on_wakeup(*connection);
      else
        ready_.push_back({connection, events[k].events});
    }
  }
  for (Transport *each : transports_) busy = each->poll(now_ms_) || busy;
  for (Connection *each : shared_)
    if (const uint32_t found = poll(*each)) ready_.push_back({each, found}), busy = true;
  for (Connection *each : behind_) ready_.push_back({each, 0});
  serve_ready();
  handler_->serve_waiting(now_ms_, deliver);
  if (now_ms_ - idle_checked_ms_ >= idle_check_ms) close_idle();
  return busy || !behind_.empty();
}

// Serve those that have been served least, for a turn's time in all: then sockets are looked at
// again, where somebody may have come who asks for little. The others stay ready.
void EventLoop::serve_ready() {
  if (ready_.empty()) return;  // spares a spinning loop the clock
  ServiceTime &times = handler_->service_time();
  if (ready_.size() > 1) {
    for (const Ready &each : ready_) times.admit(&each.connection->peer.served_us);
    std::stable_sort(ready_.begin(), ready_.end(), [](const Ready &one, const Ready &other) {
      return one.connection->peer.served_us < other.connection->peer.served_us;
    });
  }
  const uint64_t began = clock_us();
  uint64_t now = began;
  for (const Ready &each : ready_) {
    if (each.connection->closed) continue;
    turn_us_ = now;
    serve(*each.connection, each.events);
    now = clock_us();
    times.charge(&each.connection->peer.served_us, now - turn_us_);
    if (now - began > loop_us) return;
  }
}

void EventLoop::serve(Connection &connection, uint32_t events) {
  if (events == 0) return serve_behind(connection);
  if (events & EPOLLOUT) flush(connection);
  if (!connection.closed && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(connection);
}

// What a client in shared memory is ready for.
uint32_t EventLoop::poll(const Connection &connection) const {
  if (connection.closed) return 0;
  return (connection.watched & EPOLLOUT && connection.shared->writable() ? uint32_t{EPOLLOUT}
                                                                         : 0u) |
         (connection.watched & EPOLLIN && connection.shared->readable() ? uint32_t{EPOLLIN} : 0u);
}

// A wake-up, or the end of the client: then the rest of its requests is read, and replies are
// dropped.
void EventLoop::on_wakeup(Connection &connection) {
  if (connection.shared->drain_wakeups()) return;
  turn_us_ = clock_us();
  receive(connection);
  disconnect(connection, false);
}

int EventLoop::wait_ms() const {
  if (handler_->pending()) return 0;
  uint64_t wait = idle_check_ms;
  if (handler_->awaits_disk()) wait = 2;
  if (const uint64_t deadline = handler_->deadline_ms())
    wait = std::min(wait, deadline > now_ms_ ? deadline - now_ms_ : 0);
  return static_cast<int>(wait);
}

}  // namespace accel_rl::replay
