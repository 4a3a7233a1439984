// Memory that a server shares with one client, and how they tell each other that something came.
// docs/replay-protocol.md is the definition; the offsets here are its offsets.
//
// Who is about to wait says so in its word, looks once more whether there is something, and only
// then waits. Who did something reads the other one's word after it. All four are seq_cst, so in
// their one order either the word was set before it was read, and a wake-up is sent, or the reading
// came first, and with it what was done before: then the one who waits sees it when it looks once
// more. A wake-up that comes between that look and the wait is not lost either: the client's word
// is cleared by it, and its futex does not wait for a word that has changed; the server's is a byte
// in its socket, which stays there.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_SHARED_LAYOUT_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_SHARED_LAYOUT_HPP

#include "ring.hpp"

namespace accel_rl::replay {

constexpr uint32_t greeting_magic = 0x534C5241;  // "ARLS" as it lies in memory
constexpr uint32_t greeting_version = 1;

// What the server sends on the socket, with the memory's descriptor.
struct SharedGreeting {
  uint32_t magic, version;
  uint64_t ring_bytes;  // of each ring, a power of two
};

enum Wants : uint32_t {
  wants_bytes = 1,  // to read
  wants_room = 2,   // to write
};

struct SharedWords {
  RingPositions requests, replies;
  alignas(64) std::atomic<uint32_t> server_wants;  // while it rests: flags of Wants
  alignas(64) std::atomic<uint32_t> client_wants;  // while it sleeps: one of Wants; its futex
};
static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4,
              "a futex is four bytes");
static_assert(offsetof(SharedWords, replies) == 128 && offsetof(SharedWords, server_wants) == 256 &&
                  offsetof(SharedWords, client_wants) == 320,
              "as the protocol says");

constexpr size_t shared_words_bytes = 4096;  // then the requests' ring, then the replies'
constexpr uint64_t least_ring_bytes = 4096, most_ring_bytes = uint64_t{1} << 30;

constexpr bool is_ring_size(uint64_t bytes) {
  return bytes >= least_ring_bytes && bytes <= most_ring_bytes && (bytes & (bytes - 1)) == 0;
}
constexpr size_t shared_bytes(uint64_t ring_bytes) {
  return shared_words_bytes + 2 * static_cast<size_t>(ring_bytes);
}

}  // namespace accel_rl::replay

#endif
