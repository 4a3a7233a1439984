// How a request ended. The numbers go over the wire: they are never changed, only added to.

#ifndef ACCEL_RL_REPLAY_STATUS_HPP
#define ACCEL_RL_REPLAY_STATUS_HPP

#include <cstdint>

namespace accel_rl::replay {

enum class Status : uint16_t {
  ok = 0,
  retry = 1,         // not now: the limiter, or nothing to draw from yet; nothing was changed
  bad_count = 2,     // a number of items is 0, or above its limit
  bad_length = 3,    // bytes do not fit the schema
  bad_priority = 4,  // a priority is NaN, infinite or negative
  bad_slot = 5,      // a slot is not below the capacity
  bad_config = 6,    // a table's configuration is out of its range, or not that of the table
  bad_name = 7,      // a name is empty, too long, no UTF-8, or has control characters
  bad_version = 8,   // a version is not above that which is there
  limit = 9,         // a cap on bytes or on a number of things is reached
  none_newer = 10,   // there is no newer version
  out_of_memory = 11,
  // Snapshots.
  busy = 16,          // another one is being written
  io_error = 17,      // the system refused to open, read, write or rename
  damaged = 18,       // a checksum or a length does not agree
  truncated = 19,     // the file ends too early
  newer_format = 20,  // written by a later version of this program
  // Protocol errors: docs/replay-protocol.md says which of them end the connection.
  malformed = 100,        // a length, a count or a field that must be zero is not as specified
  bad_magic = 101,        // not a frame
  bad_protocol = 102,     // a version of the protocol that is not spoken here
  unknown_op = 103,       // no such operation
  too_large = 104,        // a frame above the limit
  bad_checksum = 105,     // the checksum is not that of the bytes
  out_of_order = 106,     // not before the session stands, or not twice
  unauthenticated = 107,  // the proof of knowing the secret is wrong
  wrong_session = 108,    // not the token of this connection's session
  no_such_table = 109,    // no table of that name or number
  table_differs = 110,    // there is a table of that name with another configuration
  repeated = 111,         // a number of a request that was used so long ago that its end is unknown
  unavailable = 112,      // this server was not set up for it
};

}  // namespace accel_rl::replay

#endif
