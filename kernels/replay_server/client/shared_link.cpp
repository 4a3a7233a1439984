#include "shared_link.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "../transport/futex.hpp"
#include "connect.hpp"

namespace accel_rl::replay {

namespace {

constexpr int spins = 256;  // some microseconds, before others may have the core
constexpr int rounds = 64;  // of them, before it is looked whether the server is gone

void pause_core() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The memory's descriptor, or -1 with what went wrong in errno.
int receive_greeting(int file, const Retry &retry, SharedGreeting *greeting) {
  iovec part = {greeting, sizeof *greeting};
  alignas(cmsghdr) char rights[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = rights;
  message.msg_controllen = sizeof rights;
  ssize_t got;
  do got = recvmsg(file, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && retry());
  if (got < 0) return -1;
  int memory = -1;
  const cmsghdr *head = CMSG_FIRSTHDR(&message);
  if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
      head->cmsg_len == CMSG_LEN(sizeof memory))
    std::memcpy(&memory, CMSG_DATA(head), sizeof memory);
  if (got == static_cast<ssize_t>(sizeof *greeting) && memory >= 0) return memory;
  if (memory >= 0) close(memory);
  errno = got == 0 ? ECONNRESET : EPROTO;
  return -1;
}

}  // namespace

std::unique_ptr<SharedLink> SharedLink::open(const std::string &path, bool busy,
                                             uint64_t timeout_us, const KeepWaiting &keep_waiting,
                                             std::string *why) {
  const int file = connect_unix(path, timeout_us, keep_waiting, why);
  if (file < 0) return nullptr;
  SharedGreeting greeting = {};
  const int memory = receive_greeting(file, Retry(timeout_us, keep_waiting), &greeting);
  void *mapped = MAP_FAILED;
  if (memory >= 0) {
    struct stat there;
    const bool known = greeting.magic == greeting_magic && greeting.version == greeting_version &&
                       is_ring_size(greeting.ring_bytes) && fstat(memory, &there) == 0 &&
                       there.st_size == static_cast<off_t>(shared_bytes(greeting.ring_bytes));
    errno = EPROTO;
    if (known)
      mapped = mmap(nullptr, shared_bytes(greeting.ring_bytes), PROT_READ | PROT_WRITE, MAP_SHARED,
                    memory, 0);
  }
  const int error = errno;
  if (memory >= 0) close(memory);
  if (mapped != MAP_FAILED)
    return std::unique_ptr<SharedLink>(new SharedLink(file, mapped, greeting.ring_bytes, busy));
  *why = path + " shares no memory: " + std::strerror(error);
  close(file);
  return nullptr;
}

SharedLink::SharedLink(int file, void *memory, uint64_t ring_bytes, bool busy)
    : file_(file),
      words_(static_cast<SharedWords *>(memory)),
      bytes_(shared_bytes(ring_bytes)),
      busy_(busy) {
  auto *rings = static_cast<uint8_t *>(memory) + shared_words_bytes;
  const auto size = static_cast<size_t>(ring_bytes);
  requests_ = RingWriter(&words_->requests, rings, size);
  replies_ = RingReader(&words_->replies, rings + size, size);
}

SharedLink::~SharedLink() {
  munmap(words_, bytes_);
  close(file_);
}

ssize_t SharedLink::put(const uint8_t *from, size_t count) {
  const size_t done = requests_.write(from, count);
  if (requests_.broken()) return -1;
  if (done > 0) wake_server(wants_bytes);
  return static_cast<ssize_t>(done);
}

ssize_t SharedLink::take(uint8_t *to, size_t room) {
  const size_t done = replies_.read(to, room);
  if (replies_.broken()) return -1;
  if (done > 0) wake_server(wants_room);
  return static_cast<ssize_t>(done);
}

void SharedLink::wake_server(uint32_t wanted) {
  if (!(words_->server_wants.load(std::memory_order_seq_cst) & wanted)) return;
  const uint8_t bell = 0;  // a full socket holds wake-ups enough
  if (send(file_, &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return;
}

bool SharedLink::spin(bool to_put) {
  for (int k = 0; k < spins; ++k) {
    if (ready(to_put)) return true;
    pause_core();
  }
  return false;
}

Fault SharedLink::wait(bool to_put, Deadline *deadline) {
  if (spin(to_put)) return Fault::none;
  for (;;) {
    if (requests_.broken() || replies_.broken()) return Fault::closed;
    if (const Fault fault = deadline->fault(); fault != Fault::none) return fault;
    // What was there before it hung up is still taken.
    if (hung_up()) return ready(to_put) ? Fault::none : Fault::closed;
    if (busy_) {
      for (int round = 0; round < rounds; ++round) {
        sched_yield();
        if (spin(to_put)) return Fault::none;
      }
      continue;
    }
    const uint32_t wanted = to_put ? wants_room : wants_bytes;
    words_->client_wants.store(wanted, std::memory_order_seq_cst);
    if (!ready(to_put)) futex_wait(&words_->client_wants, wanted, deadline->slice_us());
    words_->client_wants.store(0, std::memory_order_relaxed);
    if (ready(to_put)) return Fault::none;
  }
}

bool SharedLink::hung_up() const {
  pollfd socket = {file_, POLLIN | POLLRDHUP, 0};
  return ::poll(&socket, 1, 0) > 0;
}

}  // namespace accel_rl::replay
