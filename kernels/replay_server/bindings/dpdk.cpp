// DPDK's ports: a link over memif, and what there is of DPDK.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "bindings.hpp"
#include "dpdk_nic.hpp"
#include "links.hpp"
#include "nic_link.hpp"

namespace nb = nanobind;

namespace accel_rl::replay::bindings {

namespace {

std::unique_ptr<PythonLink> open_memif(const std::string &path, uint32_t id, uint64_t timeout_us) {
  Fault fault = Fault::none;
  std::string why;
  std::unique_ptr<Link> link;
  {
    const nb::gil_scoped_release released;
    link = connect_memif(path, id, timeout_us, run_signal_handlers, &fault, &why);
  }
  if (fault == Fault::interrupted) raise(fault);
  return opened(std::move(link), why);
}

nb::dict describe_dpdk() {
  std::string why;
  const accel_rl_dpdk_driver *driver = load_dpdk(&why);
  nb::dict out;
  out["version"] = driver ? driver->version : "";
  out["drivers"] = driver ? driver->drivers : "";
  out["why"] = why;
  return out;
}

}  // namespace

void bind_dpdk(nb::module_ &module) {
  module.def("open_memif", &open_memif, nb::arg("path"), nb::arg("id") = 0,
             nb::arg("timeout_us") = 0,
             "A link over interface `id` of a memif socket. Raises ConnectionRefusedError.");
  module.def("describe_dpdk", &describe_dpdk,
             "DPDK's version and the folder of its drivers, or why there is none.");
}

}  // namespace accel_rl::replay::bindings
