// The ports that DPDK's command line names, as a transport.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_DPDK_TRANSPORT_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_DPDK_TRANSPORT_HPP

#include <memory>
#include <string>
#include <vector>

#include "nic_transport.hpp"

namespace accel_rl::replay {

struct DpdkSettings {
  std::vector<std::string> arguments;  // of DPDK's environment, as in its command lines
  std::string address;                 // IPv4 or IPv6, of this server at all its ports
  uint16_t port = 0;                   // UDP
  uint16_t mtu = 1500;
  bool forwards = false;
  bool secret = false;  // clients have to prove one
  DatagramSettings datagrams;
};

// Beyond memif sockets, which only this user may open, it takes a secret. `addresses`: what clients
// connect to. Null with `why`.
std::unique_ptr<NicTransport> open_dpdk(Handler *handler, const DpdkSettings &settings,
                                        std::vector<std::string> *addresses, std::string *why);

}  // namespace accel_rl::replay

#endif
