#include "server_settings.hpp"

#include <nanobind/stl/string.h>

#include <iterator>
#include <string>

namespace nb = nanobind;

namespace accel_rl::replay::bindings {

namespace {

constexpr const char *idle_names[] = {"block", "spin", "yield", "sleep"};

Idle idle_of(const std::string &name) {
  for (size_t k = 0; k < std::size(idle_names); ++k)
    if (name == idle_names[k]) return static_cast<Idle>(k);
  throw nb::value_error(
      ("idle must be \"block\", \"spin\", \"yield\" or \"sleep\", got \"" + name + "\"").c_str());
}

// An attribute of ServerSettings, wherever it is kept.
template <typename Owner, typename Value>
void bind_setting(nb::class_<ServerSettings> &type, const char *name, Owner ServerSettings::*owner,
                  Value Owner::*value) {
  type.def_prop_rw(
      name, [=](const ServerSettings &settings) { return settings.*owner.*value; },
      [=](ServerSettings &settings, const Value &given) { settings.*owner.*value = given; });
}

}  // namespace

void bind_settings(nb::module_ &module) {
  nb::class_<ServerSettings> settings(module, "ServerSettings", "What a server allows.");
  settings.def(nb::init<>());
  settings.def_prop_rw(
      "frame_bytes", [](const ServerSettings &each) { return each.server.limits.frame_bytes; },
      [](ServerSettings &each, uint32_t bytes) { each.server.limits.frame_bytes = bytes; });
  settings.def_prop_rw(
      "batch", [](const ServerSettings &each) { return each.server.limits.batch; },
      [](ServerSettings &each, uint32_t batch) { each.server.limits.batch = batch; });
  settings.def_prop_rw(
      "idle",
      [](const ServerSettings &each) { return idle_names[static_cast<size_t>(each.loop.idle)]; },
      [](ServerSettings &each, const std::string &name) { each.loop.idle = idle_of(name); });
  constexpr auto server = &ServerSettings::server;
  constexpr auto loop = &ServerSettings::loop;
  bind_setting(settings, "table_bytes", server, &Settings::table_bytes);
  bind_setting(settings, "tables", server, &Settings::tables);
  bind_setting(settings, "mailbox_bytes", server, &Settings::mailbox_bytes);
  bind_setting(settings, "mailbox_names", server, &Settings::mailbox_names);
  bind_setting(settings, "sessions", server, &Settings::sessions);
  bind_setting(settings, "session_timeout_ms", server, &Settings::session_timeout_ms);
  bind_setting(settings, "waiting", server, &Settings::waiting);
  bind_setting(settings, "waiting_bytes", server, &Settings::waiting_bytes);
  bind_setting(settings, "snapshot_path", server, &Settings::snapshot_path);
  bind_setting(settings, "unused_ms", server, &Settings::unused_ms);
  bind_setting(settings, "slow_us", server, &Settings::slow_us);
  bind_setting(settings, "snapshots", server, &Settings::snapshots);
  bind_setting(settings, "log", server, &Settings::log);
  bind_setting(settings, "log_ms", server, &Settings::log_ms);
  bind_setting(settings, "log_bytes", server, &Settings::log_bytes);
  bind_setting(settings, "ring_bytes", loop, &LoopSettings::ring_bytes);
  bind_setting(settings, "sleep_us", loop, &LoopSettings::sleep_us);
  bind_setting(settings, "linger_us", loop, &LoopSettings::linger_us);
  bind_setting(settings, "connections", loop, &LoopSettings::connections);
  bind_setting(settings, "handshakes", loop, &LoopSettings::handshakes);
  bind_setting(settings, "handshake_ms", loop, &LoopSettings::handshake_ms);
  bind_setting(settings, "frame_ms", loop, &LoopSettings::frame_ms);
  bind_setting(settings, "write_ms", loop, &LoopSettings::write_ms);
  bind_setting(settings, "idle_ms", loop, &LoopSettings::idle_ms);
  bind_setting(settings, "buffer_bytes", loop, &LoopSettings::buffer_bytes);
  bind_setting(settings, "reply_bytes", loop, &LoopSettings::reply_bytes);
  bind_setting(settings, "unread_bytes", loop, &LoopSettings::unread_bytes);
}

}  // namespace accel_rl::replay::bindings
