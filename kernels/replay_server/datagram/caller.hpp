// Client side of datagrams: one request at a time, retransmitted until its reply is complete. Uses
// neither sockets nor a clock.

#ifndef ACCEL_RL_REPLAY_DATAGRAM_CALLER_HPP
#define ACCEL_RL_REPLAY_DATAGRAM_CALLER_HPP

#include <vector>

#include "../protocol/buffer.hpp"
#include "control.hpp"
#include "fragments.hpp"
#include "round_trip.hpp"
#include "scatter.hpp"
#include "wire.hpp"

namespace accel_rl::replay {

struct CallerCounts {
  uint64_t in = 0, out = 0;    // datagrams
  uint64_t ignored = 0;        // that were none, or not of this request
  uint64_t retransmitted = 0;  // fragments that were sent again
  uint64_t asked = 0;          // times that a reply was asked for again
};

class Caller {
 public:
  // `greeting`: 64 random bits, not 0, by which the server knows this client before WELCOME, put
  // into HELLO and AUTH that have no such number, and taken out of their replies.
  Caller(uint64_t greeting, const Address &server, Wire *wire, RoundTripSettings settings = {})
      : server_(server), wire_(wire), greeting_(greeting), clock_(settings) {}

  // Begin a request, given in parts that must not change until it ends; the first part has
  // body_offset bytes at least. The reply is written to `into` [room] if it fits there. False if
  // the parts are no frame, or one that is too large. Then call pump().
  bool begin(const Part *parts, size_t count, uint8_t *into, size_t room, uint64_t now_us);
  void receive(const uint8_t *bytes, size_t count, uint64_t now_us);
  // Send what may be sent now: after begin(), after receive() and at next_us().
  void pump(uint64_t now_us);
  uint64_t next_us() const { return clock_.next_us(); }

  bool busy() const { return stage_ != Stage::idle; }
  // Fault of the last request once the caller is idle; none if its reply is there.
  Fault fault() const { return fault_; }
  // The server says that it has the whole request, and no reply yet.
  bool waits() const { return stage_ == Stage::waiting; }
  const uint8_t *reply() const { return reply_; }
  size_t reply_bytes() const { return reply_fragments_.length; }
  void set_frame_bytes(uint32_t bytes) { frame_bytes_ = bytes; }
  // Give up the request, if there is one.
  void abandon(Fault fault) {
    if (busy()) finish(fault);
  }
  const CallerCounts &counts() const { return counts_; }

 private:
  enum class Stage : uint8_t { idle, sending, waiting, receiving };

  bool expected(const Header &header) const;
  void take_ack(const Ack &ack, uint64_t now_us);
  void take_cookie(const uint8_t *bytes, size_t count, uint64_t now_us);
  bool cut();
  void take_fragment(const uint8_t *bytes, size_t count, const Header &header, uint64_t now_us);
  bool begin_reply(const uint8_t *bytes, const Fragments &fragments);
  void check_reply();
  void expire(uint64_t now_us);
  bool send_fragment(uint32_t fragment);
  void send_again(uint32_t below, uint32_t most);
  void request_ack(bool again);
  void finish(Fault fault);

  Address server_;
  Wire *wire_;
  uint64_t greeting_;
  uint32_t frame_bytes_ = 4096;
  CallerCounts counts_;
  Stage stage_ = Stage::idle;
  Fault fault_ = Fault::none;
  RoundTrip clock_;
  // The request.
  Scatter body_;  // what is behind its header
  std::vector<Part> parts_;
  uint64_t cookie_ = 0;  // behind a HELLO, once the server gave one
  uint8_t header_[header_bytes] = {};
  uint64_t session_ = 0, request_ = 0;
  Op op_ = Op::ping;
  bool numbered_ = false;  // with the greeting
  bool checked_ = false;   // as a whole, and so shall the reply be
  Fragments fragments_;
  Ack acked_;                // what the server said last
  uint32_t sent_ = 0;        // fragments that were sent once
  bool retransmit_ = false;  // what the server misses is to be sent again
  // The reply.
  uint8_t *into_ = nullptr, *reply_ = nullptr;
  size_t room_ = 0;
  uint8_t first_[header_bytes] = {};  // header that all its fragments must have
  Fragments reply_fragments_;
  Received received_;
  uint32_t granted_ = 0, acknowledged_ = 0;    // credit, and the first missing one, as was said
  bool acknowledge_ = false, demand_ = false;  // to be sent: how far it is; what is missing, too
  FrameBuffer own_;
  uint8_t control_[body_offset] = {};  // the last acknowledgement
};

}  // namespace accel_rl::replay

#endif
