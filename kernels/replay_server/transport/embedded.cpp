#include "embedded.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "../core/clock.hpp"

namespace accel_rl::replay {

namespace {

constexpr std::chrono::milliseconds slice(50);  // then the caller is asked whether to go on

}  // namespace

Embedded::Embedded(Handler *handler, EventLoop *loop)
    : handler_(handler), loop_(loop), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Embedded::~Embedded() {
  if (event_ >= 0) ::close(event_);
}

std::unique_ptr<Link> Embedded::open(std::string *why) {
  auto made = std::make_unique<EmbeddedLink>(this);  // which leaves, if it has to, without the lock
  const auto lock = loop_->hold();
  if (closed_) {
    *why = "the server is closed";
    return nullptr;
  }
  links_.emplace(&made->peer_, made.get());
  ++handler_->counters().connections;
  ++handler_->counters().open;
  return made;
}

void Embedded::disconnect(EmbeddedLink *link) {
  const auto lock = loop_->hold();
  if (links_.erase(&link->peer_) == 0) return;
  handler_->disconnect(link->peer_, clock_ms());
  --handler_->counters().open;
  if (handler_->pending()) wake();
}

// The loop has something to do that it does not know of.
void Embedded::wake() {
  const uint64_t one = 1;
  if (rung_.exchange(true)) return;
  if (write(event_, &one, sizeof one) < 0) return;  // full: it is awake
}

bool Embedded::poll(uint64_t) {
  if (!rung_) return false;
  uint64_t times;
  const bool heard = read(event_, &times, sizeof times) > 0;
  rung_ = false;
  return heard;
}

void Embedded::deliver(Peer &peer, FrameBuffer &frame) {
  EmbeddedLink &link = *links_.at(&peer);
  handler_->counters().bytes_out += frame.size();
  const std::lock_guard<std::mutex> lock(link.mutex_);
  link.answer_.swap(frame);
  link.there_ = true;
  link.changed_.notify_one();
}

void Embedded::close_idle(uint64_t) {
  for (const auto &each : links_)  // its session went on over another connection
    if (each.first->state == Peer::State::closed) each.second->end();
}

void Embedded::close(uint64_t now_ms) {
  closed_ = true;
  for (const auto &each : links_) {
    handler_->disconnect(*each.first, now_ms);
    --handler_->counters().open;
    each.second->end();
  }
  links_.clear();
}

void EmbeddedLink::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
  changed_.notify_one();
}

Fault EmbeddedLink::handle(bool *waits) {
  Handler &handler = *server_->handler_;
  const auto lock = server_->loop_->hold();
  if (server_->closed_ || peer_.state == Peer::State::closed) return Fault::closed;
  Frame frame{request_.data(), {}};
  Status status = read_header(frame.bytes, handler.most_bytes(peer_), &frame.header);
  if (status == Status::ok && frame.header.length != request_.size()) status = Status::malformed;
  handler.counters().bytes_in += request_.size();
  Outcome outcome;
  try {
    outcome = status == Status::ok ? handler.handle(peer_, frame, &answer_, clock_ms())
                                   : handler.refuse(frame.header, status, &answer_);
  } catch (const std::bad_alloc &) {
    outcome = Outcome::close;
  }
  *waits = outcome == Outcome::waits;
  // The loop lets others go on, and ends this request's waiting in time.
  if (*waits || handler.pending()) server_->wake();
  if (outcome == Outcome::close || outcome == Outcome::reply_and_close)
    handler.disconnect(peer_, clock_ms());
  if (outcome == Outcome::close) return Fault::closed;
  if (!*waits) handler.counters().bytes_out += answer_.size();
  return Fault::none;
}

Fault EmbeddedLink::wait(uint64_t timeout_us, const KeepWaiting &keep_waiting) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::microseconds(timeout_us);
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      auto most = Clock::now() + slice;
      if (timeout_us > 0) most = std::min(most, end);
      changed_.wait_until(lock, most, [this] { return there_ || ended_; });
      if (there_) return Fault::none;
      if (ended_) return Fault::closed;
    }
    if (timeout_us > 0 && Clock::now() >= end) return Fault::timed_out;
    if (keep_waiting && !keep_waiting()) return Fault::interrupted;
  }
}

Fault EmbeddedLink::exchange(const Part *parts, size_t count, uint8_t *into, size_t room,
                             uint64_t timeout_us, const KeepWaiting &keep_waiting) {
  reply_ = nullptr, reply_bytes_ = 0;
  request_.clear();
  for (size_t k = 0; k < count; ++k)
    if (!request_.append(parts[k].bytes, parts[k].count)) return Fault::no_memory;
  if (request_.size() < header_bytes) return Fault::malformed;
  there_ = false;  // nothing is delivered that was not asked for
  bool waits = false;
  Fault fault = handle(&waits);
  if (fault == Fault::none && waits) fault = wait(timeout_us, keep_waiting);
  if (fault != Fault::none) return fault;
  reply_bytes_ = answer_.size();
  reply_ = answer_.data();
  if (reply_bytes_ > room) return Fault::none;
  std::memcpy(into, reply_, reply_bytes_);
  reply_ = into;
  return Fault::none;
}

}  // namespace accel_rl::replay
