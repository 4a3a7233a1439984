// What a server allows, and what it counts.

#ifndef ACCEL_RL_REPLAY_SERVER_SETTINGS_HPP
#define ACCEL_RL_REPLAY_SERVER_SETTINGS_HPP

#include <cstdint>
#include <functional>
#include <string>

#include "../protocol/frame.hpp"

namespace accel_rl::replay {

// Decides whether `mac` [mac_bytes] proves that the peer knows the secret, for a transcript
// [transcript_bytes] and the token that its session would have; writes the server's own proof to
// `own` [mac_bytes].
constexpr size_t transcript_bytes = 56;
using Authenticator = std::function<bool(const uint8_t *transcript, const uint8_t *mac,
                                         uint64_t token, uint8_t *own)>;
// Fills memory with cryptographically secure random bits.
using Random = std::function<bool(uint8_t *to, size_t bytes)>;

struct Settings {
  Limits limits;
  Authenticator authenticate;  // empty: no secret
  Random random;
  uint64_t table_bytes = uint64_t{8} << 30;  // of all tables
  uint32_t tables = 64;
  uint64_t mailbox_bytes = uint64_t{1} << 30;
  uint32_t mailbox_names = 256;
  uint32_t sessions = 1024;
  uint32_t session_timeout_ms = 60000;  // a session without connection is kept so long
  uint32_t waiting = 64;                // requests of one connection that wait for the limiter
  uint64_t waiting_bytes = uint64_t{256} << 20;  // of all connections
  uint64_t unused_ms = 0;  // a table or name that nobody asked for so long is removed; 0: none is
  uint64_t slow_us = 0;    // a request that takes the server so long is told of; 0: none is
  std::string snapshot_path;               // empty: no snapshots
  uint32_t snapshots = 1;                  // that are kept, the older ones as PATH.1 and on
  bool log = false;                        // changes between snapshots, too
  uint32_t log_ms = 100;                   // until the disk has what is logged
  uint64_t log_bytes = uint64_t{1} << 30;  // of the log, until a snapshot takes its place
};

// How long a request of which so many bytes came may take until it is whole: bytes that trickle do
// not keep their memory.
inline uint64_t most_frame_ms(uint32_t frame_ms, uint64_t bytes) {
  return frame_ms * (1 + (bytes >> 20));
}

struct Statistics {
  uint64_t connections = 0;      // ever accepted
  uint64_t open = 0;             // now
  uint64_t sessions = 0;         // now, with a connection or without
  uint64_t requests = 0;         // well formed ones
  uint64_t malformed = 0;        // frames that were none
  uint64_t unauthenticated = 0;  // wrong proofs
  uint64_t slow = 0;             // dropped as they did not read
  uint64_t timed_out = 0;        // dropped in a handshake, in a frame or idle
  uint64_t turned_away = 0;      // for want of room: sessions, connections, frames
  uint64_t bytes_in = 0, bytes_out = 0;
  uint64_t waiting = 0;    // requests now
  uint64_t repeated = 0;   // pushes, updates and messages answered from memory
  uint64_t snapshots = 0;  // written
};
constexpr size_t statistics_count = 14;
static_assert(sizeof(Statistics) == statistics_count * sizeof(uint64_t), "sent as they lie");

}  // namespace accel_rl::replay

#endif
