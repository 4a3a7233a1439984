// A path's folder, and the files in it whose names are the path's with a number.

#ifndef ACCEL_RL_REPLAY_CORE_FOLDER_HPP
#define ACCEL_RL_REPLAY_CORE_FOLDER_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace accel_rl::replay {

std::string folder_of(const std::string &path);

// Wait until the disk has the names of the folder of a path; false with errno.
bool sync_folder_of(const std::string &path);

// Numbers n, ascending, of files PREFIXn.
std::vector<uint64_t> numbered(const std::string &prefix);

}  // namespace accel_rl::replay

#endif
