#include "dpdk_transport.hpp"

#include <algorithm>

#include "../client/nic_link.hpp"
#include "../net/dpdk_nic.hpp"

namespace accel_rl::replay {

namespace {

bool is_memif(const DpdkNic &nic) {
  return nic.device().compare(0, 9, "net_memif") == 0 && nic.argument("role") == "server";
}

std::string memif_address(const DpdkNic &nic) {
  const std::string id = nic.argument("id");
  return "memif:" + nic.argument("socket") + "?id=" + (id.empty() ? "0" : id);
}

}  // namespace

std::unique_ptr<NicTransport> open_dpdk(Handler *handler, const DpdkSettings &settings,
                                        std::vector<std::string> *addresses, std::string *why) {
  UdpEndpoint own{{}, settings.port};
  if (!parse_address(settings.address.c_str(), &own.address) || !is_host(own.address)) {
    *why = "dpdk_address must be one host's IPv4 or IPv6 address in numbers, got \"" +
           settings.address + "\"";
    return nullptr;
  }
  std::vector<std::unique_ptr<DpdkNic>> nics;
  if (!open_dpdk_nics(settings.arguments, {settings.forwards, settings.mtu}, &nics, why))
    return nullptr;
  if (settings.forwards && nics.size() != 2) {
    *why = "in_network takes two ports of DPDK, got " + std::to_string(nics.size());
    return nullptr;
  }
  std::vector<std::string> found;
  for (const auto &nic : nics) {
    if (is_memif(*nic)) {
      // Clients of memif know no other address than the usual one.
      if (own.address == memif_server && own.port == usual_port)
        found.push_back(memif_address(*nic));
    } else if (!settings.secret) {
      *why = "a server on " + settings.address +
             ", which others can reach, must have a secret (secret=, or --secret-file)";
      return nullptr;
    }
  }
  const bool all_memif =
      std::all_of(nics.begin(), nics.end(), [](const auto &nic) { return is_memif(*nic); });
  if (!all_memif || found.empty())
    found.push_back("udp://" +
                    (own.address.is_v4() ? settings.address : "[" + settings.address + "]") + ":" +
                    std::to_string(settings.port));
  std::vector<std::unique_ptr<Nic>> ports;
  ports.reserve(nics.size());
  for (auto &nic : nics) ports.push_back(std::move(nic));
  addresses->insert(addresses->end(), found.begin(), found.end());
  return std::make_unique<NicTransport>(handler, std::move(ports), own, settings.forwards,
                                        settings.datagrams);
}

}  // namespace accel_rl::replay
