// Headers of datagrams, and the operations that only datagrams have: ACK, RESET and COOKIE.

#ifndef ACCEL_RL_REPLAY_DATAGRAM_CONTROL_HPP
#define ACCEL_RL_REPLAY_DATAGRAM_CONTROL_HPP

#include "../protocol/frame.hpp"
#include "wire.hpp"

namespace accel_rl::replay {

// Which fragments one side has of what the other one sends: a server of the request, a client of
// the reply.
struct Ack {
  bool complete = false;  // all; from a server: the reply is still to come
  bool again = false;     // what is missing below the highest that was sent shall be sent again
  uint32_t next = 0;      // the first that is missing
  uint32_t credit = 0;    // those below it may be sent, beside the first ones that need none
  uint64_t beyond[2] = {0, 0};  // bit k: number next + 1 + k has come

  bool has(uint32_t fragment) const {
    if (fragment < next) return true;
    const uint32_t past = fragment - next;  // 0: the missing one itself
    return past > 0 && past <= 128 && beyond[(past - 1) / 64] >> (past - 1) % 64 & 1;
  }
};

enum class DatagramCheck : uint8_t { ok, malformed, bad_checksum };
// Check that bytes are a datagram: a header that fits them, and the right checksum.
DatagramCheck read_datagram(const uint8_t *bytes, size_t count, Header *header);

// Write the header of one fragment, from its frame's header, with the checksum of header and parts.
void write_fragment_header(const uint8_t *frame_header, uint16_t fragment, uint16_t fragments,
                           const Part *parts, size_t count, uint8_t *out);

// Turn the header of a fragment into that of the whole frame, as a stream carries it.
void restore_frame_header(uint8_t *header);

// All are whole datagrams of body_offset bytes. `flags` is 0 or flag_reply.
void write_ack(uint64_t session, uint64_t request, uint16_t flags, const Ack &ack, uint8_t *out);
bool read_ack(const uint8_t *bytes, size_t count, Ack *out);
void write_reset(const Header &to, uint8_t *out);
void write_cookie(const Header &to, uint64_t cookie, uint8_t *out);

// Behind a HELLO: the cookie that the server gave for it.
constexpr size_t cookie_bytes = sizeof(uint64_t);

// Sends a datagram that lies in one piece, and stays there until the wire's flush().
bool send_whole(Wire *wire, const Address &to, const uint8_t *bytes, size_t count);

}  // namespace accel_rl::replay

#endif
