// What a server has counted, as Python's dictionaries.

#ifndef ACCEL_RL_REPLAY_BINDINGS_SERVER_STATS_HPP
#define ACCEL_RL_REPLAY_BINDINGS_SERVER_STATS_HPP

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datagrams.hpp"
#include "handler.hpp"
#include "stack.hpp"

namespace accel_rl::replay::bindings {

// A copy, so that it can be described once the server goes on.
struct ServerStats {
  Statistics server;
  Latencies latencies;
  std::vector<std::pair<std::string, Stats>> tables;  // by their names
  std::optional<DatagramCounts> datagrams;            // of all transports that have them
  std::optional<NetCounters> network;

  void add(const DatagramCounts &more);
  nanobind::dict describe() const;
};

}  // namespace accel_rl::replay::bindings

#endif
