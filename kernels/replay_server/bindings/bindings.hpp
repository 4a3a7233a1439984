// The parts of the module, one function each.

#ifndef ACCEL_RL_REPLAY_BINDINGS_BINDINGS_HPP
#define ACCEL_RL_REPLAY_BINDINGS_BINDINGS_HPP

#include <nanobind/nanobind.h>

namespace accel_rl::replay::bindings {

void bind_dpdk(nanobind::module_ &module);
void bind_errors(nanobind::module_ &module);
void bind_links(nanobind::module_ &module);
void bind_tables(nanobind::module_ &module);

}  // namespace accel_rl::replay::bindings

#endif
