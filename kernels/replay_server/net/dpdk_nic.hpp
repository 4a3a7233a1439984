// Ports that DPDK drives, through a library that is loaded when it is first asked for.

#ifndef ACCEL_RL_REPLAY_NET_DPDK_NIC_HPP
#define ACCEL_RL_REPLAY_NET_DPDK_NIC_HPP

#include <memory>
#include <string>
#include <vector>

#include "../dpdk/dpdk.h"
#include "memif_proxy.hpp"
#include "nic.hpp"

namespace accel_rl::replay {

// Null with `why` where the library was not built, or cannot be loaded.
const accel_rl_dpdk_driver *load_dpdk(std::string *why);

// Starts DPDK's environment unless it runs. False with `why`.
bool start_dpdk(const accel_rl_dpdk_driver *driver, const std::vector<std::string> &arguments,
                std::string *why);

struct PortSettings {
  bool promiscuous = false;
  uint16_t mtu = ACCEL_RL_DPDK_USUAL_MTU;
};

class DpdkNic : public Nic {
 public:
  // A port by its number in DPDK, which has been started. `device`: the name of a virtual one and
  // its arguments, for those who want to know.
  static std::unique_ptr<DpdkNic> open(const accel_rl_dpdk_driver *driver, uint16_t number,
                                       const PortSettings &settings, std::string device,
                                       std::string *why);
  // A virtual device, as "net_memif0,role=client,id=3".
  static std::unique_ptr<DpdkNic> attach(const accel_rl_dpdk_driver *driver,
                                         const std::string &device, const PortSettings &settings,
                                         std::string *why);
  ~DpdkNic() override { driver_->close(port_); }
  DpdkNic(const DpdkNic &) = delete;
  DpdkNic &operator=(const DpdkNic &) = delete;

  size_t receive(Part *packets, size_t most) override;
  bool send(const Part *parts, size_t count) override;
  void flush() override { driver_->flush(port_); }
  const Mac &mac() const override { return mac_; }
  size_t mtu() const override { return driver_->mtu(port_); }
  bool link() override { return driver_->link(port_) != 0; }

  const std::string &device() const { return device_; }
  // Argument of the device by name; "" if absent.
  std::string argument(const std::string &name) const;

 private:
  DpdkNic(const accel_rl_dpdk_driver *driver, accel_rl_dpdk_port *port, std::string device);

  const accel_rl_dpdk_driver *driver_;
  accel_rl_dpdk_port *port_;
  std::string device_;
  std::shared_ptr<MemifProxy> proxy_;  // of a memif server; the port goes before it
  Mac mac_;
  accel_rl_dpdk_part received_[ACCEL_RL_DPDK_BURST];
  size_t received_count_ = 0, taken_ = 0;
  std::vector<accel_rl_dpdk_part> parts_;
};

// Starts DPDK with a command line's arguments and opens every port that they name: first virtual
// devices, in their order, then those that DPDK found. False with `why`.
bool open_dpdk_nics(const std::vector<std::string> &arguments, const PortSettings &settings,
                    std::vector<std::unique_ptr<DpdkNic>> *out, std::string *why);

}  // namespace accel_rl::replay

#endif
