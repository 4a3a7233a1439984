// Client side of a transport that takes more than a stream socket. Carries whole frames without
// interpreting them.

#ifndef ACCEL_RL_REPLAY_CLIENT_LINK_HPP
#define ACCEL_RL_REPLAY_CLIENT_LINK_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace accel_rl::replay {

enum class Fault : uint8_t {
  none,
  timed_out,    // no reply, and no sign that the server has the request, in time
  closed,       // the server ended the connection, is gone or does not know it
  malformed,    // what came is no frame
  interrupted,  // by the caller's `keep_waiting`
  no_memory,
};

struct Part {
  const uint8_t *bytes;
  size_t count;
};

// One request at a time, from one thread at a time. After a fault only the destructor may follow.
class Link {
 public:
  virtual ~Link() = default;

  // Polled a few times a second while a call waits, from the calling thread; false interrupts it.
  using KeepWaiting = std::function<bool()>;

  // Sends a frame, given in parts, and waits at most `timeout_us` (0: for ever) for a whole reply
  // with its request's number; stale replies are skipped. The reply is written to `into`
  // [room] if it fits there, otherwise to memory of the link, good until the next call.
  virtual Fault exchange(const Part *parts, size_t count, uint8_t *into, size_t room,
                         uint64_t timeout_us, const KeepWaiting &keep_waiting) = 0;
  virtual const uint8_t *reply() const = 0;
  virtual size_t reply_bytes() const = 0;
  // Most bytes that a reply may have; 4,096 until the server said what it allows.
  virtual void set_frame_bytes(uint32_t bytes) = 0;
};

}  // namespace accel_rl::replay

#endif
