// Transport that the event loop serves beside its own sockets: datagrams, calls within the process.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_TRANSPORT_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_TRANSPORT_HPP

#include <cstdint>

#include "../protocol/buffer.hpp"

namespace accel_rl::replay {

struct Peer;

// Everything is called by the serving thread, with the loop's mutex held.
class Transport {
 public:
  virtual ~Transport() = default;

  // File for epoll that is readable when there may be work; -1: only poll() finds out, so the loop
  // must not block.
  virtual int file() const = 0;
  // Receive a bounded amount and send what can be sent; called at every turn of the loop, whether
  // or not file() is readable. Returns true if there was work.
  virtual bool poll(uint64_t now_ms) = 0;
  // Send a delayed reply to one of its own peers. May take over the frame's memory.
  virtual void deliver(Peer &peer, FrameBuffer &frame) = 0;
  // The loop is about to block: make file() readable by whatever arrives from now on. False if
  // something has arrived already. disarm_wakeup() follows, whatever woke the loop.
  virtual bool arm_wakeup() = 0;
  virtual void disarm_wakeup() = 0;
  // Called a few times a second: drop peers that are gone, too slow or idle.
  virtual void close_idle(uint64_t now_ms) = 0;
  // End of the loop: disconnect every peer from the handler.
  virtual void close(uint64_t now_ms) = 0;
};

}  // namespace accel_rl::replay

#endif
