// A link over anything that carries bytes in their order.

#ifndef ACCEL_RL_REPLAY_CLIENT_BYTE_LINK_HPP
#define ACCEL_RL_REPLAY_CLIENT_BYTE_LINK_HPP

#include <sys/types.h>

#include <chrono>

#include "../protocol/buffer.hpp"
#include "link.hpp"

namespace accel_rl::replay {

class ByteLink : public Link {
 public:
  Fault exchange(const Part *parts, size_t count, uint8_t *into, size_t room, uint64_t timeout_us,
                 const KeepWaiting &keep_waiting) final;
  const uint8_t *reply() const final { return reply_; }
  size_t reply_bytes() const final { return reply_bytes_; }
  void set_frame_bytes(uint32_t bytes) final { frame_bytes_ = bytes; }

 protected:
  // Deadline of a call. The clock is read only when there is nothing to do.
  class Deadline {
   public:
    Deadline(uint64_t timeout_us, const KeepWaiting &keep_waiting)
        : timeout_us_(timeout_us), keep_waiting_(keep_waiting) {}

    // Check the clock and the callback after some microseconds; the reason to end the call, or
    // none.
    Fault fault();
    // Longest wait before the next check.
    uint32_t slice_us() const;

   private:
    using Clock = std::chrono::steady_clock;

    uint64_t timeout_us_, left_us_ = 0;
    const KeepWaiting &keep_waiting_;
    bool waits_ = false;
    Clock::time_point begin_, asked_;
  };

  // Bytes moved without blocking; 0: none now; below 0: the connection has ended.
  virtual ssize_t put(const uint8_t *from, size_t count) = 0;
  virtual ssize_t take(uint8_t *to, size_t room) = 0;
  // Wait until put() (or take()) can make progress, or the deadline has passed.
  virtual Fault wait(bool to_put, Deadline *deadline) = 0;

 private:
  Fault put_all(const uint8_t *from, size_t count, Deadline *deadline);
  Fault take_up_to(size_t wanted, uint8_t *to, size_t room, size_t *got, Deadline *deadline);

  uint32_t frame_bytes_ = 4096;
  FrameBuffer memory_;
  const uint8_t *reply_ = nullptr;
  size_t reply_bytes_ = 0;
};

}  // namespace accel_rl::replay

#endif
