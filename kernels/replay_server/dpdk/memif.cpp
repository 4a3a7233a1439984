#include <cstdio>
#include <new>

#include "../client/nic_link.hpp"
#include "../protocol/frame.hpp"
#include "accel_rl_memif.h"

#define EXPORT __attribute__((visibility("default")))

using namespace accel_rl::replay;

struct accel_rl_memif {
  std::unique_ptr<NicLink> link;
  bool failed = false;
};

namespace {

accel_rl_memif_status status_of(Fault fault) {
  switch (fault) {
    case Fault::none:
      return ACCEL_RL_MEMIF_OK;
    case Fault::timed_out:
      return ACCEL_RL_MEMIF_TIMED_OUT;
    case Fault::malformed:
      return ACCEL_RL_MEMIF_MALFORMED;
    case Fault::no_memory:
      return ACCEL_RL_MEMIF_NO_MEMORY;
    default:
      return ACCEL_RL_MEMIF_CLOSED;
  }
}

}  // namespace

EXPORT accel_rl_memif *accel_rl_memif_connect(const char *path, uint32_t id, uint64_t timeout_us,
                                              accel_rl_memif_status *status, char *why,
                                              size_t why_bytes) {
  std::string reason = "no memory";
  accel_rl_memif_status result = ACCEL_RL_MEMIF_NO_MEMORY;
  accel_rl_memif *made = nullptr;
  try {
    auto client = std::make_unique<accel_rl_memif>();
    Fault fault = Fault::none;
    client->link = connect_memif(path, id, timeout_us, {}, &fault, &reason);
    result = client->link           ? ACCEL_RL_MEMIF_OK
             : fault == Fault::none ? ACCEL_RL_MEMIF_UNAVAILABLE
                                    : status_of(fault);
    if (client->link) made = client.release();
  } catch (const std::bad_alloc &) {
  }
  if (status) *status = result;
  if (why && why_bytes > 0) std::snprintf(why, why_bytes, "%s", made ? "" : reason.c_str());
  return made;
}

EXPORT accel_rl_memif_status accel_rl_memif_request(accel_rl_memif *client, const void *frame,
                                                    size_t bytes, uint64_t timeout_us,
                                                    const uint8_t **reply, size_t *reply_bytes) {
  if (bytes < body_offset) return ACCEL_RL_MEMIF_MALFORMED;
  if (client->failed) return ACCEL_RL_MEMIF_CLOSED;
  const Part whole{static_cast<const uint8_t *>(frame), bytes};
  Fault fault = Fault::no_memory;
  try {
    fault = client->link->exchange(&whole, 1, nullptr, 0, timeout_us, {});
  } catch (const std::bad_alloc &) {
  }
  client->failed = fault != Fault::none;
  if (client->failed) return status_of(fault);
  *reply = client->link->reply();
  *reply_bytes = client->link->reply_bytes();
  return ACCEL_RL_MEMIF_OK;
}

EXPORT void accel_rl_memif_allow(accel_rl_memif *client, uint32_t frame_bytes) {
  client->link->set_frame_bytes(frame_bytes);
}

EXPORT void accel_rl_memif_close(accel_rl_memif *client) { delete client; }
