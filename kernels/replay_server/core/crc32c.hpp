// CRC-32C (Castagnoli), by the processor's instruction where it has one.

#ifndef ACCEL_RL_REPLAY_CRC32C_HPP
#define ACCEL_RL_REPLAY_CRC32C_HPP

#include <cstddef>
#include <cstdint>

namespace accel_rl::replay {

// Extend the checksum `before` of earlier bytes; 0 for none.
uint32_t crc32c(const void *bytes, size_t count, uint32_t before = 0);

}  // namespace accel_rl::replay

#endif
