#include <sys/random.h>

#include <atomic>

#include "../net/dpdk_nic.hpp"
#include "nic_link.hpp"

namespace accel_rl::replay {

namespace {

// Without hugepages, devices or files that others could find: nothing of it needs a privilege.
constexpr const char *environment[] = {"--no-huge", "--no-pci", "-m", "256"};

}  // namespace

std::unique_ptr<NicLink> connect_memif(const std::string &path, uint32_t id, uint64_t timeout_us,
                                       const Link::KeepWaiting &keep_waiting, Fault *fault,
                                       std::string *why) {
  static std::atomic<uint32_t> made{0};
  *fault = Fault::none;
  if (id > most_memif_id) {
    *why = "a memif interface's id must be at most " + std::to_string(most_memif_id) + ", got " +
           std::to_string(id);
    return nullptr;
  }
  if (path.empty() || path.find(',') != std::string::npos) {
    *why = "a memif socket's path must not be empty nor have a comma, got \"" + path + "\"";
    return nullptr;
  }
  uint64_t greeting = 0;
  while (greeting == 0)
    if (getrandom(&greeting, sizeof greeting, 0) != ssize_t{sizeof greeting}) greeting = 0;
  const accel_rl_dpdk_driver *driver = load_dpdk(why);
  if (!driver) return nullptr;
  // Where a server of this process has started it with arguments of its own, they will do.
  if (!driver->is_running() &&
      !start_dpdk(driver, {std::begin(environment), std::end(environment)}, why))
    return nullptr;
  const std::string device = "net_memif_client" + std::to_string(made++) +
                             ",role=client,socket-abstract=no,socket=" + path +
                             ",id=" + std::to_string(id);
  std::unique_ptr<DpdkNic> nic = DpdkNic::attach(driver, device, {}, why);
  if (!nic) {
    *why = "nobody has the memif socket " + path + " (" + *why + ")";
    return nullptr;
  }
  auto link = std::make_unique<NicLink>(
      std::move(nic), UdpEndpoint{ipv4_address(memif_network + 2 + id), usual_port},
      UdpEndpoint{memif_server, usual_port}, greeting);
  *fault = link->await_server(timeout_us, keep_waiting);
  if (*fault == Fault::none) return link;
  *why = "no server answers on interface " + std::to_string(id) + " of the memif socket " + path;
  return nullptr;
}

}  // namespace accel_rl::replay
