// A client on this machine, through memory that the server shares with it. Its socket is where it
// came by, what wakes the server, and the sign that it lives; all else goes through two rings.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_SHARED_MEMORY_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_SHARED_MEMORY_HPP

#include <memory>
#include <string>

#include "shared_layout.hpp"
#include "stream.hpp"

namespace accel_rl::replay {

// Why this machine cannot share memory as it takes; empty: it can.
std::string why_no_shared_memory();

class SharedStream : public Stream {
 public:
  // Makes memory and hands it to the client at the other end of the socket, whose owner is the
  // connection. Null if the system has none, or the client is gone.
  static std::unique_ptr<SharedStream> open(int file, uint64_t ring_bytes);
  ~SharedStream() override;
  SharedStream(const SharedStream &) = delete;
  SharedStream &operator=(const SharedStream &) = delete;

  ssize_t receive(uint8_t *to, size_t room) override;
  ssize_t send(const uint8_t *from, size_t count) override;
  void end_sending() override;

  // Whether receive() or send() would do something, if only say that the client is gone.
  bool readable() { return requests_.held() > 0 || requests_.broken() || gone_; }
  bool writable() { return replies_.room() > 0 || replies_.broken(); }
  // The socket is readable: whether the client still lives.
  bool drain_wakeups();
  // Have the client wake us by what is wanted of `wants`, until disarm_wakeup(). False if it is
  // there.
  bool arm_wakeup(uint32_t wants);
  void disarm_wakeup() { words_->server_wants.store(0, std::memory_order_relaxed); }

 private:
  SharedStream(int file, void *memory, uint64_t ring_bytes);

  void wake_client(uint32_t wanted);

  int file_;
  SharedWords *words_;
  size_t bytes_;  // of all the memory
  RingReader requests_;
  RingWriter replies_;
  bool gone_ = false;
};

}  // namespace accel_rl::replay

#endif
