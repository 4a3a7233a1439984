// Clients in the server's own process: their threads call the handler themselves, while the event
// loop stands aside. Only a request that has to wait is answered by the loop.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_EMBEDDED_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_EMBEDDED_HPP

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "../client/link.hpp"
#include "event_loop.hpp"

namespace accel_rl::replay {

class EmbeddedLink;

class Embedded : public Transport {
 public:
  Embedded(Handler *handler, EventLoop *loop);
  ~Embedded() override;
  Embedded(const Embedded &) = delete;
  Embedded &operator=(const Embedded &) = delete;

  // From any thread. Every link must be gone before this is. Null with `why`.
  std::unique_ptr<Link> open(std::string *why);

  int file() const override { return event_; }
  bool poll(uint64_t now_ms) override;
  void deliver(Peer &peer, FrameBuffer &frame) override;
  bool arm_wakeup() override { return true; }
  void disarm_wakeup() override {}
  void close_idle(uint64_t now_ms) override;
  void close(uint64_t now_ms) override;

 private:
  friend class EmbeddedLink;

  void disconnect(EmbeddedLink *link);
  void wake();

  Handler *handler_;
  EventLoop *loop_;
  int event_;
  std::atomic<bool> rung_{false};
  bool closed_ = false;
  std::unordered_map<Peer *, EmbeddedLink *> links_;
};

class EmbeddedLink : public Link {
 public:
  explicit EmbeddedLink(Embedded *server) : server_(server) { peer_.transport = server; }
  ~EmbeddedLink() override { server_->disconnect(this); }
  EmbeddedLink(const EmbeddedLink &) = delete;
  EmbeddedLink &operator=(const EmbeddedLink &) = delete;

  Fault exchange(const Part *parts, size_t count, uint8_t *into, size_t room, uint64_t timeout_us,
                 const KeepWaiting &keep_waiting) override;
  const uint8_t *reply() const override { return reply_; }
  size_t reply_bytes() const override { return reply_bytes_; }
  void set_frame_bytes(uint32_t) override {}  // the server is trusted as this process is

 private:
  friend class Embedded;

  Fault handle(bool *waits);
  Fault wait(uint64_t timeout_us, const KeepWaiting &keep_waiting);
  void end();

  Embedded *server_;
  Peer peer_;
  FrameBuffer request_, answer_;
  const uint8_t *reply_ = nullptr;
  size_t reply_bytes_ = 0;
  // A late reply, delivered by the loop's thread, or the end of the connection.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool there_ = false, ended_ = false;
};

}  // namespace accel_rl::replay

#endif
