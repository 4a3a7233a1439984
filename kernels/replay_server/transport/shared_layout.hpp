// Layout of the memory that a server shares with one client, as docs/replay-protocol.md defines it.
//
// Wake-ups: a waiter stores its word, looks at the ring's position again, then sleeps. The other
// side stores a position, then loads the waiter's word. All four are sequentially consistent, so
// one order holds for both sides. If the word's store comes before its load, a wake-up is sent. If
// the load comes first, so does the position's store, and the waiter's second look sees it. Weaker
// orders would let each side miss the other's store. A wake-up between the second look and the
// sleep is not lost: the client's word is cleared with it, and a futex does not sleep on a changed
// word; the server's is a byte in its socket.

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
