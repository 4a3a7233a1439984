// A client of a replay server over a memif socket, for programs in C: link with
// -laccel_rl_dpdk. It carries frames, which docs/replay-protocol.md describes, whole and in order;
// what they say is the program's own. DPDK's environment starts with the first connection, in
// threads of its own: it needs no hugepages, no devices and no privileges.

#ifndef ACCEL_RL_MEMIF_H
#define ACCEL_RL_MEMIF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct accel_rl_memif accel_rl_memif;

typedef enum {
  ACCEL_RL_MEMIF_OK = 0,
  ACCEL_RL_MEMIF_TIMED_OUT,  // no reply in time: whether the request was done, nobody knows
  ACCEL_RL_MEMIF_CLOSED,     // the server is gone, or does not know this client any more
  ACCEL_RL_MEMIF_MALFORMED,  // what was given or came is no frame
  ACCEL_RL_MEMIF_NO_MEMORY,
  ACCEL_RL_MEMIF_UNAVAILABLE,  // DPDK does not start, or the interface is in use
} accel_rl_memif_status;

// Connect to the memif socket at `path` as interface `id`, which no other client has: 0 to 252.
// Waits for the server for at most `timeout_us` (0: for ever). Null with the `status` and the
// reason in `why` [why_bytes]; both may be null.
accel_rl_memif *accel_rl_memif_connect(const char *path, uint32_t id, uint64_t timeout_us,
                                       accel_rl_memif_status *status, char *why, size_t why_bytes);

// Send a frame of `bytes` bytes, 64 at least, and wait at most `timeout_us` (0: for ever) for the
// reply that has its request's number. `reply` is good until the next request. A connection that
// failed once is at its end. HELLO and AUTH come first; then `accel_rl_memif_allow` may be told how
// long WELCOME says that replies may be.
accel_rl_memif_status accel_rl_memif_request(accel_rl_memif *client, const void *frame,
                                             size_t bytes, uint64_t timeout_us,
                                             const uint8_t **reply, size_t *reply_bytes);
void accel_rl_memif_allow(accel_rl_memif *client, uint32_t frame_bytes);

// End the connection, without a BYE. Null is no client.
void accel_rl_memif_close(accel_rl_memif *client);

#ifdef __cplusplus
}
#endif

#endif
