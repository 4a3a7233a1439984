// What a server allows, as a Python class.

#ifndef ACCEL_RL_REPLAY_BINDINGS_SERVER_SETTINGS_HPP
#define ACCEL_RL_REPLAY_BINDINGS_SERVER_SETTINGS_HPP

#include <nanobind/nanobind.h>

#include "event_loop.hpp"
#include "handler.hpp"

namespace accel_rl::replay::bindings {

struct ServerSettings {
  Settings server;
  LoopSettings loop;
};

void bind_settings(nanobind::module_ &module);

}  // namespace accel_rl::replay::bindings

#endif
