// The frame of the protocol: header, operations, flags and the limits that hold before anything is
// known of a table. docs/replay-protocol.md is the definition; fields.hpp has the offsets.

#ifndef ACCEL_RL_REPLAY_PROTOCOL_FRAME_HPP
#define ACCEL_RL_REPLAY_PROTOCOL_FRAME_HPP

#include <cstddef>
#include <cstdint>

#include "../core/status.hpp"
#include "fields.hpp"

namespace accel_rl::replay {

constexpr uint32_t frame_magic = 0x524C5241;  // "ARLR" as it lies in memory
constexpr uint8_t frame_version = 1;

constexpr size_t header_bytes = field::header::checksum.end();
constexpr size_t fixed_bytes = 24;    // of every operation, behind the header
constexpr size_t section_align = 64;  // sections begin at multiples of it, from the frame's start
constexpr size_t body_offset = header_bytes + fixed_bytes;
static_assert(body_offset == section_align, "the first section follows the fixed fields");

enum class Op : uint8_t {
  hello = 1,
  challenge,  // only as a reply
  auth,
  welcome,  // only as a reply
  open_table,
  push,
  sample,
  update,
  stats,
  publish,
  fetch,
  snapshot,
  ping,
  bye,
  ack,  // of datagrams only, with the two below: a handler knows none of them
  reset,
  cookie,
  remove,  // of a table, or of a name in the mailbox
  next_table,
  drain,
};
constexpr uint8_t last_op = static_cast<uint8_t>(Op::drain);

enum Flag : uint16_t {
  flag_reply = 1,    // from a server
  flag_checked = 2,  // the checksum is there; a reply has one if its request had
};
constexpr uint16_t known_flags = flag_reply | flag_checked;

constexpr uint16_t no_table = 0xFFFF;  // the table of an operation that has none

struct Header {
  uint8_t op = 0;
  uint16_t flags = 0;
  uint64_t session = 0;
  uint64_t request = 0;
  uint16_t table = no_table;
  uint16_t status = 0;
  uint16_t fragment = 0;
  uint16_t fragments = 1;
  uint32_t length = 0;  // of the whole frame, header included
  uint32_t checksum = 0;
};

// Limits on what a peer may ask for. A frame before the session stands is far smaller.
struct Limits {
  uint32_t frame_bytes = 16u << 20;
  uint32_t early_frame_bytes = 4096;
  uint32_t batch = 1u << 16;    // items of one PUSH, SAMPLE or UPDATE
  uint32_t amper_batch = 4096;  // of one SAMPLE by amper_fr, which tries 500 slots for each
  uint32_t timeout_ms = 3600u * 1000;
};

constexpr uint64_t aligned(uint64_t offset) {
  return (offset + section_align - 1) / section_align * section_align;
}

}  // namespace accel_rl::replay

#endif
