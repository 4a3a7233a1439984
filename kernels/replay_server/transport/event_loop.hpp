// Event loop over TCP and Unix sockets, shared memory and other transports, on one thread. Nothing
// here blocks on a single client.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_EVENT_LOOP_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_EVENT_LOOP_HPP

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "../protocol/buffer.hpp"
#include "../server/handler.hpp"
#include "listener.hpp"
#include "shared_memory.hpp"
#include "transport.hpp"

struct epoll_event;

namespace accel_rl::replay {

// Idle policy of the serving thread.
enum class Idle : uint8_t {
  block,  // until the kernel says that something came; but see linger_us
  spin,   // looks again at once: a core of its own
  yield,  // looks again when other threads have had the core
  sleep,  // looks again after sleep_us
};

struct LoopSettings {
  Idle idle = Idle::block;
  uint32_t sleep_us = 50;
  uint32_t linger_us = 50;  // of block: looks again so long after sockets were served
  uint64_t ring_bytes = uint64_t{1} << 20;  // of each of the two that a client shares
  uint32_t connections = 1024;
  uint32_t handshakes = 256;     // connections whose session does not stand yet
  uint32_t handshake_ms = 5000;  // until the session stands
  uint32_t frame_ms = 10000;     // without a byte in a frame; for each MiB until it is whole
  uint32_t write_ms = 30000;     // without reading any of a reply
  uint32_t idle_ms = 0;          // without a request; 0: for ever
  uint64_t buffer_bytes = uint64_t{1} << 30;   // of what was received, of all; shared memory, too
  uint64_t reply_bytes = uint64_t{256} << 20;  // that one connection may leave unread
  uint64_t unread_bytes = uint64_t{1} << 30;   // of replies, that all may leave unread
};

class EventLoop {
 public:
  EventLoop(Handler *handler, LoopSettings settings) : handler_(handler), settings_(settings) {}
  ~EventLoop();

  // Before run(). False with `why`.
  bool open(std::string *why);
  bool add(Listener *listener, std::string *why);
  // A transport without a file() cannot wake a loop that blocks, and is refused with Idle::block.
  bool add(Transport *transport, std::string *why);
  void run();   // until stop()
  void stop();  // from any thread
  // Disconnect every client and drop listeners and transports: the end of run(), also of a loop
  // that never ran. Idempotent.
  void close();
  void wake();  // from any thread: there is work that no client sent

  // Lock the handler from another thread. A loop that spins would hardly ever release the mutex to
  // others, so waiting threads are counted and the loop yields to them.
  std::unique_lock<std::mutex> hold() {
    ++waiters_;
    std::unique_lock<std::mutex> lock(mutex_);
    --waiters_;
    return lock;
  }

 private:
  struct Connection {
    Peer peer;
    int file = -1;
    std::unique_ptr<Stream> stream;
    SharedStream *shared = nullptr;  // the same, if it is one: not epoll, but poll() looks at it
    uint32_t watched = 0;            // epoll events
    FrameBuffer in, out;
    size_t sent = 0;                                    // of out
    size_t counted = 0;                                 // of out's memory, in unread_
    uint64_t opened_ms = 0, read_ms = 0, write_ms = 0;  // of the last progress
    uint64_t begun_ms = 0;                              // of what `in` begins with
    bool behind = false;                                // used up its turn, and has more to do
    bool surplus = false;                               // is told that there is no room, and ends
    bool closing = false;  // ends when out is sent and the peer has seen it
    bool closed = false;
  };

  void accept_from(const Listener &listener);
  Connection *admit(int file, const Listener &listener);
  bool open_stream(Connection &connection, const Listener &listener);
  uint32_t poll(const Connection &connection) const;
  void on_wakeup(Connection &connection);
  void evict_half_open();
  void receive(Connection &connection);
  void discard_input(Connection &connection);
  void release(Connection &connection);
  void reclaim(const Connection &except);
  bool make_room(Connection &connection);
  bool evict_slow_senders(const Connection &connection, size_t more);
  void refuse_frame(Connection &connection);
  void turn_away(int file, const Listener &listener);
  bool turn_is_over() const;
  void fall_behind(Connection &connection);
  void resume(Connection &connection);
  void serve_ready();
  void serve(Connection &connection, uint32_t events);
  void serve_behind(Connection &connection);
  void handle_frames(Connection &connection);
  bool send_pieces(Connection &connection, const FrameBuffer &frame, size_t *sent);
  void send_frame(Connection &connection, FrameBuffer *frame);
  bool keep(Connection &connection, FrameBuffer *frame, size_t sent);
  bool evict_slow_readers(const Connection &connection, size_t more);
  void count_unread(Connection &connection);
  void flush(Connection &connection);
  void update_epoll(Connection &connection);
  void disconnect(Connection &connection, bool flush_first);
  bool run_once(const epoll_event *events, int count, const Handler::Deliver &deliver);
  void yield_to_waiters() const;
  int wait_for_events(epoll_event *events, int wait);
  int busy_poll(epoll_event *events, uint64_t most_us) const;
  bool arm_wakeup();
  void disarm_wakeup();
  void close_idle();
  void close_idle(Connection &connection);
  void free_closed();
  int wait_ms() const;
  bool applies_backpressure(const Connection &connection) const;

  Handler *handler_;
  LoopSettings settings_;
  struct Ready {
    Connection *connection;
    uint32_t events;  // epoll's; none of those that fell behind
  };

  int epoll_ = -1, event_ = -1;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::atomic<uint32_t> waiters_{0};  // threads that wait for the mutex
  std::vector<Listener *> listeners_;
  std::vector<Transport *> transports_;
  std::vector<Connection *> shared_;  // those through memory
  std::vector<Connection *> behind_;
  std::vector<Ready> ready_;  // of a turn of the loop
  uint64_t turn_us_ = 0;      // when the present connection's turn began
  bool armed_ = false;        // transports were told so
  uint32_t turns_ = 0;
  bool served_ = false;  // sockets, in the last turn
  std::unordered_map<Peer *, std::unique_ptr<Connection>> connections_;
  uint32_t surplus_ = 0;  // connections that are
  bool accepting_ = true;
  std::vector<Connection *> closed_;
  uint64_t now_ms_ = 0, idle_checked_ms_ = 0;
  uint64_t buffered_ = 0, unread_ = 0;  // memory of what came, and of replies
  FrameBuffer reply_, aligned_;
};

}  // namespace accel_rl::replay

#endif
