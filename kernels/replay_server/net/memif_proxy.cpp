#include "memif_proxy.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>

namespace accel_rl::replay {

namespace {

// Bounds of memif's messages, which have 128 bytes and at most one file.
constexpr size_t most_message = 256, control_bytes = CMSG_LEN(sizeof(int));
constexpr size_t most_pairs = 300;  // more than there are interfaces; others wait in the kernel

std::mutex opening;  // or going: of those with the same path one at a time

sockaddr_un address_of(const std::string &path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

int open_socket(int type) { return socket(AF_UNIX, type | SOCK_CLOEXEC, 0); }

// Removes the socket that a server left which was killed. The probe is of another type than
// memif's, so that a server that lives never hears of it.
void remove_dead(const std::string &path) {
  struct stat there;
  if (lstat(path.c_str(), &there) != 0 || !S_ISSOCK(there.st_mode)) return;
  const sockaddr_un address = address_of(path);
  const int probe = open_socket(SOCK_STREAM | SOCK_NONBLOCK);
  if (probe < 0) return;
  if (connect(probe, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0 &&
      errno == ECONNREFUSED)
    unlink(path.c_str());
  close(probe);
}

bool is_private(const std::string &folder) {
  struct stat there;
  return lstat(folder.c_str(), &there) == 0 && S_ISDIR(there.st_mode) &&
         there.st_uid == geteuid() && (there.st_mode & 077) == 0;
}

// One message, with the file that it may bring. False: its end, or the other side takes no more.
bool pass(int from, int to) {
  char bytes[most_message];
  alignas(cmsghdr) char control[control_bytes];
  iovec part = {bytes, sizeof bytes};
  msghdr message = {};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = control_bytes;
  const ssize_t count = recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  int file = -1;
  const cmsghdr *brought = CMSG_FIRSTHDR(&message);
  if (brought && brought->cmsg_type == SCM_RIGHTS)
    std::memcpy(&file, CMSG_DATA(brought), sizeof file);
  part.iov_len = static_cast<size_t>(count);
  const bool whole = count > 0 && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (file < 0) message.msg_control = nullptr, message.msg_controllen = 0;
  const bool passed = whole && sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == count;
  if (file >= 0) close(file);
  return passed;
}

}  // namespace

MemifProxy::MemifProxy(const std::string &path)
    : path_(path), folder_(path + ".dpdk"), inner_(folder_ + "/s"), owner_(getpid()) {
  pairs_.reserve(most_pairs);
}

std::shared_ptr<MemifProxy> MemifProxy::at(const std::string &path, std::string *why) {
  static std::mutex finding;
  static std::map<std::string, std::weak_ptr<MemifProxy>> proxies;
  if (path.empty() || path.size() > most_path_bytes) {
    *why = "a memif socket's path must have 1 to " + std::to_string(most_path_bytes) +
           " bytes, got \"" + path + "\"";
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(finding);
  std::shared_ptr<MemifProxy> proxy = proxies[path].lock();
  if (proxy) return proxy;
  proxy.reset(new MemifProxy(path));
  if (!proxy->open(why)) return nullptr;
  proxies[path] = proxy;
  return proxy;
}

bool MemifProxy::open(std::string *why) {
  const std::lock_guard<std::mutex> lock(opening);
  remove_dead(path_);
  const sockaddr_un address = address_of(path_);
  listener_ = open_socket(SOCK_SEQPACKET | SOCK_NONBLOCK);
  end_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  bound_ = listener_ >= 0 && end_ >= 0 &&
           bind(listener_, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0;
  if (!bound_ || chmod(path_.c_str(), 0600) != 0) {
    *why = "cannot listen at the memif socket " + path_ + ": " + std::strerror(errno);
    return false;
  }
  private_ = (mkdir(folder_.c_str(), 0700) == 0 || errno == EEXIST) && is_private(folder_);
  if (!private_) {
    *why = "cannot make " + folder_ + ", which must be this user's only";
    return false;
  }
  remove_dead(inner_);
  if (listen(listener_, SOMAXCONN) != 0) {
    *why = "cannot listen at the memif socket " + path_ + ": " + std::strerror(errno);
    return false;
  }
  try {
    thread_ = std::thread(&MemifProxy::run, this);
  } catch (const std::system_error &) {
    *why = "no thread for the memif socket " + path_;
    return false;
  }
  return true;
}

MemifProxy::~MemifProxy() {
  const bool is_owner = getpid() == owner_;  // a child after fork() has neither thread nor socket
  std::unique_lock<std::mutex> lock(opening, std::defer_lock);
  if (is_owner) lock.lock();
  if (thread_.joinable() && is_owner) {
    eventfd_write(end_, 1);
    thread_.join();
  } else if (thread_.joinable()) {
    thread_.detach();
  }
  for (const Pair &pair : pairs_) {
    if (pair.client >= 0) close(pair.client);
    close(pair.dpdk);
  }
  if (listener_ >= 0) close(listener_);
  if (end_ >= 0) close(end_);
  if (!bound_ || !is_owner) return;
  unlink(path_.c_str());
  if (!private_) return;
  unlink(inner_.c_str());
  rmdir(folder_.c_str());
}

void MemifProxy::accept_client() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) {
    if (errno == EMFILE || errno == ENFILE) poll(nullptr, 0, 10);  // until there are files again
    return;
  }
  const int dpdk = open_socket(SOCK_SEQPACKET);
  const sockaddr_un address = address_of(inner_);
  const timeval most = {1, 0};  // DPDK's listener keeps few who wait
  if (dpdk >= 0 && setsockopt(dpdk, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most) == 0 &&
      connect(dpdk, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0) {
    pairs_.push_back({client, dpdk, false});
    return;
  }
  if (dpdk >= 0) close(dpdk);
  close(client);
}

// False if the pair is at its end.
bool MemifProxy::serve(Pair *pair, bool of_client, bool of_dpdk) {
  if (of_dpdk && pair->client < 0) {  // the greeting of one who is gone
    char greeting[most_message];
    return recv(pair->dpdk, greeting, sizeof greeting, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }
  if (of_dpdk) {
    if (!pass(pair->dpdk, pair->client)) return false;  // it has spoken, or is gone
    pair->greeted = true;
  }
  if (!of_client || pass(pair->client, pair->dpdk)) return true;
  if (pair->greeted) return false;
  close(pair->client);
  pair->client = -1;
  return true;
}

void MemifProxy::run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are the main thread's
  std::vector<pollfd> files;
  files.reserve(2 + 2 * most_pairs);
  for (;;) {
    files.clear();
    files.push_back({end_, POLLIN, 0});
    files.push_back({pairs_.size() < most_pairs ? listener_ : -1, POLLIN, 0});
    for (const Pair &pair : pairs_) {
      files.push_back({pair.client, POLLIN, 0});
      files.push_back({pair.dpdk, POLLIN, 0});
    }
    if (poll(files.data(), files.size(), -1) < 0) continue;
    if (files[0].revents) return;
    size_t left = 0;
    for (size_t k = 0; k < pairs_.size(); ++k) {
      Pair &pair = pairs_[k];
      if (serve(&pair, files[2 + 2 * k].revents != 0, files[3 + 2 * k].revents != 0)) {
        pairs_[left++] = pair;
        continue;
      }
      if (pair.client >= 0) close(pair.client);
      close(pair.dpdk);
    }
    pairs_.resize(left);
    if (files[1].revents) accept_client();
  }
}

}  // namespace accel_rl::replay
