// The folder of a path.

#ifndef ACCEL_RL_REPLAY_CORE_FOLDER_HPP
#define ACCEL_RL_REPLAY_CORE_FOLDER_HPP

#include <string>

namespace accel_rl::replay {

inline std::string folder_of(const std::string &path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace accel_rl::replay

#endif
