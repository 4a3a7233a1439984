// The files of a server's state: snapshots PATH (the newest), PATH.1 and so on, each with a serial,
// and segments of the log, PATH.log.N: what changed after the snapshot of serial N began.

#ifndef ACCEL_RL_REPLAY_GENERATIONS_HPP
#define ACCEL_RL_REPLAY_GENERATIONS_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "status.hpp"

namespace accel_rl::replay {

// Snapshots that are there, the newest first.
std::vector<std::string> snapshots_of(const std::string &path);
// Serials of the segments that are there, ascending.
std::vector<uint64_t> segments_of(const std::string &path);
std::string segment_of(const std::string &path, uint64_t serial);

// Give the newest snapshot its name, and the older ones theirs: of `kept` (1 or more) in all, with
// the segments that the oldest of them needs.
Status take_place(const std::string &newest, const std::string &path, uint32_t kept,
                  std::string *why);

// Keep a file that is not to be read again, under another name; what to say of that.
std::string set_aside(const std::string &path);

}  // namespace accel_rl::replay

#endif
