// A way to clients that the event loop serves beside its own sockets: shared memory, datagrams.

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

  // Readable when there may be something to do, for epoll; -1: nothing says so, and only poll()
  // finds out, so that the loop must not block, and says so when it is added.
  virtual int file() const = 0;
  // Take what came, a bounded part of it, and send what may be sent: at every turn of the loop,
  // whether or not file() is readable. Whether there was anything.
  virtual bool poll(uint64_t now_ms) = 0;
  // Send a reply that had to wait, to one of its own peers. It may keep the frame's memory.
  virtual void deliver(Peer &peer, FrameBuffer &frame) = 0;
  // The loop is about to block: have file() become readable by what comes from now on. False if
  // something has come already. disarm_wakeup() follows, whatever woke the loop.
  virtual bool arm_wakeup() = 0;
  virtual void disarm_wakeup() = 0;
  // A few times a second: drop peers that are gone, too slow or idle.
  virtual void close_idle(uint64_t now_ms) = 0;
  // The end of the loop: every peer leaves the handler.
  virtual void close(uint64_t now_ms) = 0;
};

}  // namespace accel_rl::replay

#endif
