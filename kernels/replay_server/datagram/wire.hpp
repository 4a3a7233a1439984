// How datagrams leave: what the engines of both sides need of a network, and nothing more.

#ifndef ACCEL_RL_REPLAY_DATAGRAM_WIRE_HPP
#define ACCEL_RL_REPLAY_DATAGRAM_WIRE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../client/link.hpp"
#include "fragments.hpp"

namespace accel_rl::replay {

// Where a peer is, in the bytes of whoever carries its datagrams; the engines only keep it.
struct Address {
  static constexpr size_t most_bytes = 28;  // as many as IPv6 needs

  std::array<uint8_t, most_bytes> bytes{};
  uint8_t size = 0;

  static Address of(const void *from, size_t count) {
    Address made;
    made.size = static_cast<uint8_t>(count < most_bytes ? count : most_bytes);
    std::memcpy(made.bytes.data(), from, made.size);
    return made;
  }
  bool operator==(const Address &other) const {
    return size == other.size && std::memcmp(bytes.data(), other.bytes.data(), size) == 0;
  }
  bool operator!=(const Address &other) const { return !(*this == other); }
};

class Wire {
 public:
  virtual ~Wire() = default;

  // A datagram of header_bytes bytes and what the parts hold. False: no room now; it is then sent
  // again when the client asks, as one that was lost. The header may be overwritten on return; the
  // parts stay as they are until flush().
  virtual bool send(const Address &to, const uint8_t *header, const Part *parts, size_t count) = 0;
  // Called behind the datagrams that belong together.
  virtual void flush() = 0;
  // Most bytes behind a header in a datagram to this address: least_slice to most_slice.
  virtual uint32_t slice_bytes(const Address &to) const = 0;
  // Cut a frame of `length` bytes for this address; see Fragments::cut. Asks for the path's MTU
  // only where the frame may need more than one datagram.
  bool cut(const Address &to, uint32_t length, Fragments *out) const {
    const bool is_small = length <= header_bytes + least_slice;
    return Fragments::cut(length, is_small ? least_slice : slice_bytes(to), out);
  }
  // Bytes of one frame that may be on their way to here at once: credit is given for as many. A
  // frame's first ones come without, whatever this is.
  virtual size_t inbox_bytes() const { return 0; }
};

}  // namespace accel_rl::replay

#endif
