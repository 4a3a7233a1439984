// Parser of bytes from a peer. Each function checks every length and count against the bytes
// received and against a limit before using it, and none allocates more than the limits allow.
// Results point into the frame.

#ifndef ACCEL_RL_REPLAY_PROTOCOL_PARSER_HPP
#define ACCEL_RL_REPLAY_PROTOCOL_PARSER_HPP

#include <string>
#include <vector>

#include "../core/table.hpp"
#include "frame.hpp"

namespace accel_rl::replay {

// Parse a header from at least `header_bytes` bytes. A length above `most` is too_large.
Status read_header(const uint8_t *bytes, uint32_t most, Header *header);

// A whole frame of `header.length` bytes at an address that section_align divides.
struct Frame {
  const uint8_t *bytes = nullptr;
  Header header;
};

// Whether the checksum, if there is one, is right, and whether a server takes such a frame.
Status check_request(const Frame &frame);

struct Hello {
  uint64_t resume;       // token of a session to go on with, or 0
  const uint8_t *nonce;  // [nonce_bytes]
};
constexpr size_t nonce_bytes = 16, challenge_bytes = 32, mac_bytes = 32;

enum OpenFlag : uint16_t { open_create = 1, open_described = 2 };
// Offset of a table's name in its description; the columns follow.
constexpr size_t names_offset = field::open_table::max_priority.end();

struct OpenTable {
  bool create;     // if there is none of that name
  bool described;  // otherwise only the name counts
  TableConfig config;
};

struct Push {
  uint32_t items, timeout_ms;
  const float *priorities;  // null: none
  std::vector<const std::byte *> columns;
};

struct SampleRequest {
  uint64_t seed;
  uint32_t batch, timeout_ms;
};

struct Update {
  uint32_t items;
  const uint32_t *slots, *generations;
  const float *priorities;
};

struct Publish {
  uint64_t version;
  std::string name;
  const uint8_t *value;
  uint32_t bytes;
};

struct Fetch {
  uint64_t newer_than;
  bool any;  // whatever its version
  std::string name;
};

struct Remove {
  bool message;  // not a table
  std::string name;
};

Status parse_hello(const Frame &frame, Hello *out);
Status parse_auth(const Frame &frame, const uint8_t **mac);  // [mac_bytes]
// `why` says more of a configuration that is not ok.
Status parse_open_table(const Frame &frame, OpenTable *out, std::string *why);
// `column_bytes`: of an item, of each column of the table.
Status parse_push(const Frame &frame, const Limits &limits, const std::vector<size_t> &column_bytes,
                  Push *out);
Status parse_sample(const Frame &frame, const Limits &limits, SampleRequest *out);
Status parse_update(const Frame &frame, const Limits &limits, Update *out);
Status parse_publish(const Frame &frame, Publish *out);
Status parse_fetch(const Frame &frame, Fetch *out);
Status parse_remove(const Frame &frame, Remove *out);
Status parse_next_table(const Frame &frame, uint16_t *from);
// STATS, SNAPSHOT and BYE have nothing but a header and empty fixed fields.
Status parse_empty(const Frame &frame);

}  // namespace accel_rl::replay

#endif
