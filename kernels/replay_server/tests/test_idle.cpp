// The event loop with each idle policy: sockets and another transport are served side by side, late
// replies go to the transport that their peer came by, and other threads get the handler.

#include <sys/eventfd.h>
#include <time.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <thread>

#include "dial.hpp"
#include "event_loop.hpp"

using namespace frames;

// Requests of one peer that a thread of the same process leaves, as bytes.
class Letters : public Transport {
 public:
  Letters(Handler *handler, bool wakes)
      : handler_(handler), file_(wakes ? eventfd(0, EFD_NONBLOCK) : -1) {
    peer_.transport = this;
  }
  ~Letters() override {
    if (file_ >= 0) ::close(file_);
  }

  int file() const override { return file_; }
  bool poll(uint64_t now_ms) override {
    std::unique_lock<std::mutex> lock(mutex_);
    if (closed || requests_.empty()) return false;
    FrameBuffer request = std::move(requests_.front()), reply;
    requests_.pop_front();
    lock.unlock();
    Frame frame{request.data(), {}};
    if (read_header(request.data(), UINT32_MAX, &frame.header) != Status::ok) abort();
    if (handler_->handle(peer_, frame, &reply, now_ms) == Outcome::reply) deliver(peer_, reply);
    return true;
  }
  void deliver(Peer &peer, FrameBuffer &frame) override {
    if (&peer != &peer_) abort();
    const std::lock_guard<std::mutex> lock(mutex_);
    reply_.swap(frame);
    there_ = true;
    changed_.notify_one();
  }
  bool arm_wakeup() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    asleep_ = true;
    return requests_.empty();
  }
  void disarm_wakeup() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    asleep_ = false;
    uint64_t times;
    if (file_ >= 0 && read(file_, &times, sizeof times) < 0) return;
  }
  void close_idle(uint64_t) override { ++sweeps; }
  void close(uint64_t now_ms) override {
    handler_->disconnect(peer_, now_ms);
    closed = true;
  }

  void leave(const Request &request) {
    FrameBuffer copy;
    copy.append(request.bytes.data(), request.bytes.size());
    const std::lock_guard<std::mutex> lock(mutex_);
    requests_.push_back(std::move(copy));
    const uint64_t one = 1;
    if (asleep_ && file_ >= 0 && write(file_, &one, sizeof one) < 0) abort();
  }
  Status wait_for(FrameBuffer *reply) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(20), [this] { return there_; }))
      return Status::malformed;
    there_ = false;
    reply->swap(reply_);
    return static_cast<Status>(get(reply->data(), field::header::status));
  }

  int sweeps = 0;
  bool closed = false;

 private:
  Handler *handler_;
  int file_;
  Peer peer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<FrameBuffer> requests_;
  FrameBuffer reply_;
  bool there_ = false, asleep_ = false;
};

static LoopSettings policy(Idle idle) {
  LoopSettings made;
  made.idle = idle;
  return made;
}

static void test_policy(Idle idle, bool wakes) {
  Handler handler(settings());
  Listener tcp;
  EventLoop loop(&handler, policy(idle));
  Letters letters(&handler, wakes);
  std::string why;
  CHECK(loop.open(&why) && tcp.open_tcp("127.0.0.1", 0, false, &why), "%s", why.c_str());
  CHECK(loop.add(&tcp, &why) && loop.add(&letters, &why), "%s", why.c_str());
  std::thread server([&] { loop.run(); });
  FrameBuffer reply;
  letters.leave(Request(Op::hello));
  CHECK(letters.wait_for(&reply) == Status::ok, "hello");
  const auto token = get(reply.data(), field::header::session);
  const int file = dial_tcp(tcp.port());
  const uint64_t other = greet(file);
  Request open = opening(100);
  open.session(other);
  CHECK(ask(file, open, &reply) == Status::ok, "open");
  // It waits until the socket's client pushes.
  Request late = sample(1, 4, 20000);
  letters.leave(late.session(token).number(7));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Request pushes = push({1, 2, 3});
  CHECK(ask(file, pushes.session(other).number(1), &reply) == Status::ok, "push");
  CHECK(letters.wait_for(&reply) == Status::ok, "a late reply");
  CHECK(get(reply.data(), field::header::request) == 7, "of another request");
  for (uint64_t k = 0; k < 50; ++k) {
    Request ping(Op::ping);
    letters.leave(ping.session(token).number(k));
    CHECK(ask(file, ping.session(other), &reply) == Status::ok, "the socket's ping %d", int(k));
    CHECK(letters.wait_for(&reply) == Status::ok, "ping %d", int(k));
  }
  for (int k = 0; k < 50; ++k) {
    const auto lock = loop.hold();
    CHECK(handler.statistics().sessions == 2, "sessions");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  loop.stop();
  server.join();
  CHECK(letters.sweeps > 0 && letters.closed, "%d sweeps", letters.sweeps);
  close(file);
}

// Nothing would ever wake it.
static void test_refused() {
  Handler handler(settings());
  EventLoop loop(&handler, {});
  Letters letters(&handler, false);
  std::string why;
  CHECK(loop.open(&why), "%s", why.c_str());
  CHECK(!loop.add(&letters, &why), "it blocks");
  CHECK(why.find("idle must be") == 0, "%s", why.c_str());
}

// However long it looks again after a request, it sleeps when nobody asks for anything.
static void test_lingers(uint32_t linger_us) {
  LoopSettings wanted;
  wanted.linger_us = linger_us;
  Handler handler(settings());
  Listener tcp;
  EventLoop loop(&handler, wanted);
  std::string why;
  CHECK(loop.open(&why) && tcp.open_tcp("127.0.0.1", 0, false, &why), "%s", why.c_str());
  CHECK(loop.add(&tcp, &why), "%s", why.c_str());
  std::thread server([&] { loop.run(); });
  const int file = dial_tcp(tcp.port());
  Request ping(Op::ping);
  ping.session(greet(file));
  FrameBuffer reply;
  const auto used_us = [&server] {
    clockid_t clock;
    timespec now;
    if (pthread_getcpuclockid(server.native_handle(), &clock) != 0) abort();
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
  };
  for (uint64_t k = 1; k < 20; ++k)
    CHECK(ask(file, ping.number(k), &reply) == Status::ok, "ping %d", int(k));
  const auto before_us = used_us();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto spent_us = used_us() - before_us;
  CHECK(spent_us < 20000, "%d us of a core, lingering %u", int(spent_us), linger_us);
  CHECK(ask(file, ping.number(20), &reply) == Status::ok, "the last ping");
  loop.stop();
  server.join();
  close(file);
}

int main() {
  for (const Idle idle : {Idle::spin, Idle::yield, Idle::sleep}) test_policy(idle, false);
  for (const Idle idle : {Idle::block, Idle::spin}) test_policy(idle, true);
  test_refused();
  test_lingers(0), test_lingers(LoopSettings().linger_us);
  return finish();
}
