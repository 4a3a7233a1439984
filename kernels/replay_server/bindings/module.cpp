// accel_rl.remote._native.

#include "bindings.hpp"

void bind_server(nanobind::module_ &module);

NB_MODULE(_native, module) {
  accel_rl::replay::bindings::bind_errors(module);
  accel_rl::replay::bindings::bind_links(module);
  accel_rl::replay::bindings::bind_dpdk(module);
  accel_rl::replay::bindings::bind_tables(module);
  bind_server(module);
}
