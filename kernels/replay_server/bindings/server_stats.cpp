#include "server_stats.hpp"

#include <cstring>

namespace nb = nanobind;

namespace accel_rl::replay::bindings {

namespace {

constexpr const char *statistics_names[statistics_count] = {
    "connections",     "open",    "sessions",  "requests",    "malformed",
    "unauthenticated", "slow",    "timed_out", "turned_away", "bytes_in",
    "bytes_out",       "waiting", "repeated",  "snapshots"};

// Dict of consecutive counters.
template <size_t count, typename Counts>
nb::dict named(const char *const (&names)[count], const Counts &counts) {
  uint64_t values[count];
  static_assert(sizeof values == sizeof counts, "each has a name");
  std::memcpy(values, &counts, sizeof values);
  nb::dict out;
  for (size_t k = 0; k < count; ++k) out[names[k]] = values[k];
  return out;
}

nb::dict of_table(const Stats &stats) {
  nb::dict out;
  out["inserts"] = stats.inserts;
  out["samples"] = stats.samples;
  out["updates"] = stats.updates;
  out["stale"] = stats.stale;
  out["size"] = stats.size;
  out["refused"] = stats.refused;
  out["waited"] = stats.waited;
  out["capped"] = stats.capped;
  out["ages"] = stats.ages;
  return out;
}

}  // namespace

void ServerStats::add(const DatagramCounts &more) {
  if (!datagrams) datagrams.emplace();
  uint64_t sum[datagram_counts_count], each[datagram_counts_count];
  std::memcpy(sum, &*datagrams, sizeof sum);
  std::memcpy(each, &more, sizeof each);
  for (size_t k = 0; k < datagram_counts_count; ++k) sum[k] += each[k];
  std::memcpy(&*datagrams, sum, sizeof sum);
}

nb::dict ServerStats::describe() const {
  nb::dict out = named(statistics_names, server), of_tables;
  for (const auto &[name, stats] : tables) of_tables[name.c_str()] = of_table(stats);
  out["tables"] = of_tables;
  nb::dict of_ops;
  for (size_t op = 0; op <= last_op; ++op) {
    nb::list counts;
    uint64_t all = 0;
    for (const uint64_t count : latencies.counts[op]) counts.append(count), all += count;
    if (all > 0) of_ops[nb::int_(op)] = nb::make_tuple(counts, 1e-6 * latencies.us[op]);
  }
  out["latencies"] = of_ops;
  if (datagrams) out["datagrams"] = named(datagram_count_names, *datagrams);
  if (network) out["network"] = named(net_counter_names, *network);
  return out;
}

}  // namespace accel_rl::replay::bindings
