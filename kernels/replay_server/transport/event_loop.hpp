// Serves TCP and Unix sockets from one thread: nothing here ever waits for one client.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_EVENT_LOOP_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_EVENT_LOOP_HPP

#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "../crypto/crypto.hpp"
#include "../protocol/buffer.hpp"
#include "../server/handler.hpp"
#include "listener.hpp"

struct epoll_event;

namespace accel_rl::replay {

struct LoopSettings {
  uint32_t connections = 1024;
  uint32_t handshakes = 256;     // connections whose session does not stand yet
  uint32_t handshake_ms = 5000;  // until the session stands
  uint32_t frame_ms = 10000;     // without a byte in the middle of a frame
  uint32_t write_ms = 30000;     // without reading any of a reply
  uint32_t idle_ms = 0;          // without a request; 0: for ever
  uint64_t buffer_bytes = uint64_t{1} << 30;  // of what was received, of all connections
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
  void run();  // until stop()
  void stop();  // from any thread
  void wake();  // from any thread: there is something to do that no client asked for

  // Held while requests are handled: who else wants the handler takes it.
  std::mutex &mutex() { return mutex_; }

 private:
  struct Connection {
    Peer peer;
    int file = -1;
    std::unique_ptr<Tls> tls;  // null: plain
    uint32_t watched = 0;     // epoll events
    FrameBuffer in, out;
    size_t sent = 0;          // of out
    size_t counted = 0;       // of out's memory, in unread_
    uint64_t opened_ms = 0, read_ms = 0, write_ms = 0;  // of the last progress
    bool last_words = false;  // ends when out is sent and the peer has seen it
    bool dead = false;

    ssize_t receive(uint8_t *to, size_t room) {
      return tls ? tls->receive(to, room) : recv(file, to, room, 0);
    }
    ssize_t send(const uint8_t *from, size_t count) {
      return tls ? tls->send(from, count) : ::send(file, from, count, MSG_NOSIGNAL);
    }
    // Whether there are bytes of which epoll does not know.
    bool holds() const { return tls && tls->holds(); }
    void finish() {
      if (tls) tls->finish();
      shutdown(file, SHUT_WR);
    }
  };

  void accept_from(const Listener &listener);
  void admit(int file, const Listener &listener);
  void make_way();
  void receive(Connection &connection);
  void drain(Connection &connection);
  void release(Connection &connection);
  void reclaim(const Connection &except);
  bool make_room(Connection &connection);
  void handle_frames(Connection &connection);
  void send_frame(Connection &connection, FrameBuffer *frame);
  bool keep(Connection &connection, FrameBuffer *frame, size_t sent);
  bool spare_unread(const Connection &connection, size_t more);
  void count_unread(Connection &connection);
  void flush(Connection &connection);
  void watch(Connection &connection);
  void end(Connection &connection, bool with_last_words);
  void turn(const epoll_event *events, int count, const Handler::Deliver &deliver);
  void sweep();
  void sweep(Connection &connection);
  void bury();
  int wait_ms() const;
  bool paused(const Connection &connection) const;

  Handler *handler_;
  LoopSettings settings_;
  int epoll_ = -1, event_ = -1;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<Listener *> listeners_;
  std::unordered_map<Peer *, std::unique_ptr<Connection>> connections_;
  bool accepting_ = true;
  std::vector<Connection *> dead_;
  uint64_t now_ms_ = 0, swept_ms_ = 0;
  uint64_t buffered_ = 0, unread_ = 0;  // memory of what came, and of replies
  FrameBuffer reply_, aligned_;
};

}  // namespace accel_rl::replay

#endif
