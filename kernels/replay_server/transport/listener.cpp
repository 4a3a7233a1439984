#include "listener.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "../core/folder.hpp"
#include "endpoint.hpp"

namespace accel_rl::replay {

namespace {

constexpr int backlog = 128;
constexpr int most_tries = 1000;  // to lock a folder, a millisecond apart

// Whether somebody accepts connections there.
bool is_served(const sockaddr_un &address) {
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return true;
  const int result = connect(probe, reinterpret_cast<const sockaddr *>(&address), sizeof address);
  const bool served = result == 0 || errno == EAGAIN;
  ::close(probe);
  return served;
}

// Held while a path is looked at and taken over, or given back: two servers that find the same
// stale socket would each unlink the other's. The folder is locked, so that no file is left behind;
// not waited for without end, since whoever can read the folder can lock it.
class FolderLock {
 public:
  explicit FolderLock(const std::string &path) {
    file_ = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int k = 0; file_ >= 0 && k < most_tries && flock(file_, LOCK_EX | LOCK_NB) != 0; ++k)
      usleep(1000);
  }
  ~FolderLock() {
    if (file_ >= 0) ::close(file_);
  }
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

 private:
  int file_;
};

}  // namespace

bool Listener::fail(const std::string &what, std::string *why) {
  const int error = errno;
  *why = what + ": " + std::strerror(error);
  if (file_ >= 0) ::close(file_);
  file_ = -1;
  path_.clear();
  return false;
}

bool Listener::open_tcp(const std::string &host, uint16_t port, bool secret, std::string *why) {
  Endpoint wanted;
  if (!find_endpoint(host, port, secret, &wanted, why)) return false;
  const std::string name = host + " port " + std::to_string(port);
  file_ = socket(wanted.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file_ < 0) return fail("cannot open a socket for " + name, why);
  const int on = 1;
  setsockopt(file_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(file_, wanted.general(), wanted.length) != 0 || listen(file_, backlog) != 0)
    return fail("cannot listen on " + name, why);
  Endpoint bound;
  bound.length = sizeof bound.address;
  if (getsockname(file_, reinterpret_cast<sockaddr *>(&bound.address), &bound.length) != 0)
    return fail("cannot tell the port of " + name, why);
  port_ = port_of(bound.general());
  return true;
}

bool Listener::open_unix(const std::string &path, std::string *why) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    *why = "a socket's path must have 1 to " + std::to_string(sizeof address.sun_path - 1) +
           " bytes, got " + std::to_string(path.size());
    return false;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const FolderLock lock(path);
  struct stat there;
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode) || is_served(address)) {
      errno = EADDRINUSE;
      return fail("cannot listen on " + path, why);
    }
    unlink(path.c_str());
  }
  file_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file_ < 0) return fail("cannot open a socket for " + path, why);
  // Before bind, so that the path is never there with more rights.
  if (fchmod(file_, 0600) != 0) return fail("cannot protect " + path, why);
  if (bind(file_, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
    return fail("cannot listen on " + path, why);
  path_ = path;
  if (chmod(path.c_str(), 0600) != 0 || listen(file_, backlog) != 0 ||
      lstat(path.c_str(), &bound_) != 0) {
    unlink(path.c_str());
    return fail("cannot listen on " + path, why);
  }
  return true;
}

bool Listener::open_shared(const std::string &path, std::string *why) {
  shares_memory_ = true;
  return open_unix(path, why);
}

void Listener::close() {
  if (file_ < 0) return;
  ::close(file_);
  file_ = -1;
  if (path_.empty()) return;
  const FolderLock lock(path_);
  struct stat there;  // somebody may have removed ours, and another server taken the path
  if (lstat(path_.c_str(), &there) == 0 && there.st_ino == bound_.st_ino &&
      there.st_dev == bound_.st_dev)
    unlink(path_.c_str());
  path_.clear();
}

}  // namespace accel_rl::replay
