// Stream of a client on this machine, through two rings in shared memory. The socket that it
// connected to carries wake-ups of the server, and its end is the end of the client.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_SHARED_MEMORY_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_SHARED_MEMORY_HPP

#include <memory>
#include <string>

#include "shared_layout.hpp"
#include "stream.hpp"

namespace accel_rl::replay {

// Reason why this machine cannot share memory; empty if it can.
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

  // True if receive() or send() would not return EAGAIN.
  bool readable() { return requests_.held() > 0 || requests_.broken() || gone_; }
  bool writable() { return replies_.room() > 0 || replies_.broken(); }
  // Read wake-ups off the socket; false if the client is gone.
  bool drain_wakeups();
  // Ask the client for a wake-up by any of `wants`, until disarm_wakeup(). False if one of them is
  // there already.
  bool arm_wakeup(uint32_t wants);
  // Relaxed: a client that still sees the old word sends one wake-up too many.
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
