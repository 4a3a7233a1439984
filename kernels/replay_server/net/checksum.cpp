#include "checksum.hpp"

#include <cstring>

#include "headers.hpp"

namespace accel_rl::replay {

namespace {

uint16_t fold(uint64_t sum) {
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

}  // namespace

void Checksum::add(const uint8_t *bytes, size_t count) {
  uint64_t sum = 0;
  size_t k = 0;
  for (uint32_t word; k + sizeof word <= count; k += sizeof word) {
    std::memcpy(&word, bytes + k, sizeof word);
    sum += word;
  }
  for (; k < count; k += 2) {
    uint16_t word = 0;
    std::memcpy(&word, bytes + k, k + 1 < count ? 2 : 1);
    sum += word;
  }
  const uint32_t folded = fold(sum);
  sum_ += odd_ ? (folded & 0xFF) << 8 | folded >> 8 : folded;
  odd_ = odd_ != (count % 2 == 1);
}

void Checksum::add_pseudo_header(const IpAddress &source, const IpAddress &destination,
                                 Protocol protocol, size_t payload_bytes) {
  uint8_t rest[8] = {};
  store32(rest, static_cast<uint32_t>(payload_bytes));
  rest[7] = static_cast<uint8_t>(protocol);
  add(source.bytes.data(), IpAddress::size);
  add(destination.bytes.data(), IpAddress::size);
  add(rest, sizeof rest);
}

uint16_t Checksum::value() const {
  const uint16_t sum = fold(sum_);
  uint8_t bytes[sizeof sum];
  std::memcpy(bytes, &sum, sizeof sum);
  return static_cast<uint16_t>(~load16(bytes));
}

uint16_t internet_checksum(const uint8_t *bytes, size_t count) {
  Checksum sum;
  sum.add(bytes, count);
  return sum.value();
}

}  // namespace accel_rl::replay
