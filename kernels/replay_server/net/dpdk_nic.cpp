#include "dpdk_nic.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>

namespace accel_rl::replay {

namespace {

constexpr size_t why_bytes = 4608, most_ports = 32;
const char library_name[] = "libaccel_rl_dpdk.so";

// Beside the file that this code is in.
std::string library_path() {
  Dl_info here = {};
  if (!dladdr(reinterpret_cast<const void *>(&load_dpdk), &here) || !here.dli_fname)
    return library_name;
  const std::string path = here.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? library_name : path.substr(0, slash + 1) + library_name;
}

std::string argument_of(const std::string &device, const std::string &name) {
  const std::string key = "," + name + "=";
  const size_t found = device.find(key);
  if (found == std::string::npos) return "";
  const size_t begin = found + key.size();
  return device.substr(begin, std::min(device.find(',', begin), device.size()) - begin);
}

}  // namespace

const accel_rl_dpdk_driver *load_dpdk(std::string *why) {
  static std::mutex loading;
  static const accel_rl_dpdk_driver *driver = nullptr;
  const std::lock_guard<std::mutex> lock(loading);
  if (driver) return driver;
  void *library = dlopen(library_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    *why =
        "DPDK's driver is not there: install DPDK's headers (22.11 or later, Debian's dpdk-dev) "
        "and pkg-config, then reinstall accel_rl";
    if (reason) *why += std::string(" (") + reason + ")";
    return nullptr;
  }
  using Entry = const accel_rl_dpdk_driver *(*)(uint32_t);
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "accel_rl_dpdk"));
  driver = entry ? entry(ACCEL_RL_DPDK_INTERFACE) : nullptr;
  if (!driver) *why = "DPDK's driver is of another build of accel_rl: reinstall it";
  return driver;
}

bool start_dpdk(const accel_rl_dpdk_driver *driver, const std::vector<std::string> &arguments,
                std::string *why) {
  std::vector<const char *> all;
  all.reserve(arguments.size());
  for (const std::string &each : arguments) all.push_back(each.c_str());
  char reason[why_bytes] = "";
  if (driver->start(all.data(), all.size(), reason, sizeof reason) == 0) return true;
  *why = reason;
  return false;
}

DpdkNic::DpdkNic(const accel_rl_dpdk_driver *driver, accel_rl_dpdk_port *port, std::string device)
    : driver_(driver), port_(port), device_(std::move(device)) {
  driver_->mac(port_, mac_.data());
}

std::unique_ptr<DpdkNic> DpdkNic::open(const accel_rl_dpdk_driver *driver, uint16_t number,
                                       const PortSettings &settings, std::string device,
                                       std::string *why) {
  char reason[why_bytes] = "";
  accel_rl_dpdk_port *port =
      driver->open(number, settings.promiscuous, settings.mtu, reason, sizeof reason);
  if (!port) {
    *why = reason;
    return nullptr;
  }
  return std::unique_ptr<DpdkNic>(new DpdkNic(driver, port, std::move(device)));
}

std::unique_ptr<DpdkNic> DpdkNic::attach(const accel_rl_dpdk_driver *driver,
                                         const std::string &device, const PortSettings &settings,
                                         std::string *why) {
  const size_t comma = std::min(device.find(','), device.size());
  const std::string name = device.substr(0, comma);
  std::string arguments = comma < device.size() ? device.substr(comma + 1) : "";
  const bool is_memif = name.compare(0, 9, "net_memif") == 0;
  const bool serves = argument_of(device, "role") == "server";
  std::shared_ptr<MemifProxy> proxy;
  if (is_memif && !serves && argument_of(device, "role") != "client") {
    *why = "role=server is missing, without which DPDK's memif is a client; got " + device;
    return nullptr;
  }
  if (is_memif && serves) {
    const std::string path = argument_of(device, "socket"), key = "socket=";
    // Others could come to one in the kernel's own name space.
    if (path.empty() || argument_of(device, "socket-abstract") != "no") {
      *why =
          "net_memif must have socket-abstract=no and a socket=PATH, which only this user may "
          "open; got " +
          device;
      return nullptr;
    }
    proxy = MemifProxy::at(path, why);
    if (!proxy) return nullptr;
    arguments.replace(arguments.find(key + path) + key.size(), path.size(), proxy->inner());
  }
  // The rings of af_packet hold 2,048 bytes a packet unless told otherwise.
  if (name.compare(0, 13, "net_af_packet") == 0 && settings.mtu > ACCEL_RL_DPDK_USUAL_MTU &&
      argument_of(device, "framesz").empty()) {
    const size_t frame = accel_rl_dpdk_room(settings.mtu);
    // Frames must fill a block, and blocks fill pages of memory.
    arguments += ",framesz=" + std::to_string(frame) + ",blocksz=" + std::to_string(64 * frame);
  }
  char reason[why_bytes] = "";
  uint16_t number = 0;
  if (driver->attach(name.c_str(), arguments.c_str(), &number, reason, sizeof reason) != 0) {
    *why = reason;
    return nullptr;
  }
  std::unique_ptr<DpdkNic> nic = open(driver, number, settings, device, why);
  if (nic) nic->proxy_ = std::move(proxy);
  return nic;
}

size_t DpdkNic::receive(Part *packets, size_t most) {
  if (taken_ == received_count_) {
    taken_ = 0;
    received_count_ = driver_->receive(port_, received_);
  }
  const size_t count = std::min(most, received_count_ - taken_);
  for (size_t k = 0; k < count; ++k)
    packets[k] = {received_[taken_ + k].bytes, received_[taken_ + k].count};
  taken_ += count;
  return count;
}

bool DpdkNic::send(const Part *parts, size_t count) {
  parts_.clear();
  for (size_t k = 0; k < count; ++k) parts_.push_back({parts[k].bytes, parts[k].count});
  return driver_->send(port_, parts_.data(), count) != 0;
}

std::string DpdkNic::argument(const std::string &name) const { return argument_of(device_, name); }

bool open_dpdk_nics(const std::vector<std::string> &arguments, const PortSettings &settings,
                    std::vector<std::unique_ptr<DpdkNic>> *out, std::string *why) {
  const accel_rl_dpdk_driver *driver = load_dpdk(why);
  if (!driver) return false;
  // Virtual devices are made when they are needed, and go with their ports: the environment starts
  // only once in a process, a server may more often.
  static const std::string option = "--vdev";
  std::vector<std::string> rest, devices;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const std::string &each = arguments[k];
    if (each.compare(0, option.size() + 1, option + "=") == 0) {
      devices.push_back(each.substr(option.size() + 1));
    } else if (each == option && k + 1 < arguments.size()) {
      devices.push_back(arguments[++k]);
    } else {
      rest.push_back(each);
    }
  }
  if (!start_dpdk(driver, rest, why)) return false;
  uint16_t found[most_ports];
  const size_t found_count = driver->list(found, most_ports);
  std::vector<std::unique_ptr<DpdkNic>> nics;
  for (const std::string &device : devices) {
    nics.push_back(DpdkNic::attach(driver, device, settings, why));
    if (!nics.back()) return false;
  }
  for (size_t k = 0; k < found_count; ++k) {
    nics.push_back(DpdkNic::open(driver, found[k], settings, "", why));
    if (!nics.back()) return false;
  }
  if (nics.empty()) {
    *why = "DPDK has no port: name a device with --vdev, or bind one to a driver of its own";
    return false;
  }
  *out = std::move(nics);
  return true;
}

}  // namespace accel_rl::replay
