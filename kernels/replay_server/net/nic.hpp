// A port of a network as the stack needs it: packets in, packets out. What drives it is not known.

#ifndef ACCEL_RL_REPLAY_NET_NIC_HPP
#define ACCEL_RL_REPLAY_NET_NIC_HPP

#include <array>
#include <cstddef>
#include <cstdint>

#include "../client/link.hpp"

namespace accel_rl::replay {

using Mac = std::array<uint8_t, 6>;

// For one thread.
class Nic {
 public:
  virtual ~Nic() = default;

  // Takes up to `most` packets that came, from the Ethernet header on, without its checksum at the
  // end; they are good until the next call.
  virtual size_t receive(Part *packets, size_t most) = 0;
  // Takes a packet, given in parts, to be sent by flush() at the latest; false: there is no room,
  // and it is lost. Nobody looks at the parts after it.
  virtual bool send(const Part *parts, size_t count) = 0;
  virtual void flush() = 0;
  virtual const Mac &mac() const = 0;
  // Most bytes of what follows the Ethernet header.
  virtual size_t mtu() const = 0;
  // Whether there is somebody at the other end of the line.
  virtual bool link() = 0;
};

}  // namespace accel_rl::replay

#endif
