#include "generations.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "block_reader.hpp"
#include "folder.hpp"
#include "snapshot_format.hpp"

namespace accel_rl::replay {

namespace {

bool exists(const std::string &path) {
  struct stat found;
  return ::stat(path.c_str(), &found) == 0;
}

std::string generation(const std::string &path, uint64_t number) {
  return number == 0 ? path : path + "." + std::to_string(number);
}

// Remove segments that began before the last of `kept` snapshots; where there are fewer, none.
void remove_segments(const std::string &path, uint32_t kept) {
  const std::vector<std::string> snapshots = snapshots_of(path);
  if (snapshots.size() < kept) return;
  BlockReader oldest(snapshots[kept - 1]);
  if (oldest.open(snapshot::magic, "snapshot") != Status::ok) return;
  for (const uint64_t serial : segments_of(path))
    if (serial < oldest.serial()) ::unlink(segment_of(path, serial).c_str());
}

}  // namespace

std::vector<std::string> snapshots_of(const std::string &path) {
  std::vector<std::string> found;
  if (exists(path)) found.push_back(path);
  for (const uint64_t number : numbered(path + ".")) found.push_back(generation(path, number));
  return found;
}

std::vector<uint64_t> segments_of(const std::string &path) { return numbered(path + ".log."); }

std::string segment_of(const std::string &path, uint64_t serial) {
  return path + ".log." + std::to_string(serial);
}

Status take_place(const std::string &newest, const std::string &path, uint32_t kept,
                  std::string *why) {
  for (uint32_t number = kept; number-- > 1;) {
    const std::string from = generation(path, number - 1), to = generation(path, number);
    if (!exists(from)) continue;
    if (number > 1 && std::rename(from.c_str(), to.c_str()) != 0)
      return system_error("cannot rename " + from, why);
    if (number > 1) continue;
    ::unlink(to.c_str());  // the newest stays under its own name, too, until the next has it
    if (::link(from.c_str(), to.c_str()) != 0) return system_error("cannot link " + to, why);
  }
  if (std::rename(newest.c_str(), path.c_str()) != 0)
    return system_error("cannot rename " + newest, why);
  if (!sync_folder_of(path)) return system_error("cannot sync the folder of " + path, why);
  remove_segments(path, kept);
  return Status::ok;
}

std::string set_aside(const std::string &path) {
  const std::string to = path + ".damaged";
  const bool renamed = std::rename(path.c_str(), to.c_str()) == 0;
  return renamed ? "it is kept as " + to : "and could not be renamed to " + to;
}

}  // namespace accel_rl::replay
