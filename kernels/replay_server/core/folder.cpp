#include "folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace accel_rl::replay {

namespace {

constexpr size_t most_digits = 19;  // of a number of 64 bits that cannot overflow

struct CloseFolder {
  void operator()(DIR *folder) const { ::closedir(folder); }
};

}  // namespace

std::string folder_of(const std::string &path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

bool sync_folder_of(const std::string &path) {
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = folder >= 0 && ::fsync(folder) == 0;
  const int error = errno;
  if (folder >= 0) ::close(folder);
  errno = error;
  return synced;
}

std::vector<uint64_t> numbered(const std::string &prefix) {
  std::vector<uint64_t> found;
  const size_t slash = prefix.rfind('/');
  const std::string start = slash == std::string::npos ? prefix : prefix.substr(slash + 1);
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(folder_of(prefix).c_str()));
  while (const dirent *entry = folder ? ::readdir(folder.get()) : nullptr) {
    const std::string name = entry->d_name;
    const std::string digits = name.substr(std::min(name.size(), start.size()));
    if (name.compare(0, start.size(), start) != 0 || digits.empty() ||
        digits.size() > most_digits || digits.find_first_not_of("0123456789") != std::string::npos)
      continue;
    found.push_back(std::stoull(digits));
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace accel_rl::replay
