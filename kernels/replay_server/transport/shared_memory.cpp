#include "shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "futex.hpp"

namespace accel_rl::replay {

namespace {

// Sealed: a client that shrank it would have the server killed by SIGBUS.
int make_memory(size_t bytes) {
  const int memory = memfd_create("accel_rl replay", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory < 0) return -1;
  if (ftruncate(memory, static_cast<off_t>(bytes)) == 0 &&
      fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    return memory;
  close(memory);
  return -1;
}

bool send_greeting(int file, int memory, uint64_t ring_bytes) {
  SharedGreeting greeting = {greeting_magic, greeting_version, ring_bytes};
  iovec part = {&greeting, sizeof greeting};
  alignas(cmsghdr) char rights[CMSG_SPACE(sizeof memory)] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = rights;
  message.msg_controllen = sizeof rights;
  cmsghdr *head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof memory);
  std::memcpy(CMSG_DATA(head), &memory, sizeof memory);
  return sendmsg(file, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof greeting);
}

}  // namespace

std::string why_no_shared_memory() {
  const int memory = make_memory(shared_bytes(least_ring_bytes));
  if (memory < 0) return std::string("memfd_create: ") + std::strerror(errno);
  close(memory);
  std::atomic<uint32_t> word{0};
  if (futex_wake(&word) < 0) return std::string("futex: ") + std::strerror(errno);
  return "";
}

std::unique_ptr<SharedStream> SharedStream::open(int file, uint64_t ring_bytes) {
  const size_t bytes = shared_bytes(ring_bytes);
  const int memory = make_memory(bytes);
  if (memory < 0) return nullptr;
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  std::unique_ptr<SharedStream> made;
  if (mapped != MAP_FAILED) made.reset(new SharedStream(file, mapped, ring_bytes));
  // From here on the client may write.
  if (made && !send_greeting(file, memory, ring_bytes)) made.reset();
  close(memory);
  return made;
}

SharedStream::SharedStream(int file, void *memory, uint64_t ring_bytes)
    : file_(file), words_(new (memory) SharedWords()), bytes_(shared_bytes(ring_bytes)) {
  auto *rings = static_cast<uint8_t *>(memory) + shared_words_bytes;
  const auto size = static_cast<size_t>(ring_bytes);
  requests_ = RingReader(&words_->requests, rings, size);
  replies_ = RingWriter(&words_->replies, rings + size, size);
}

SharedStream::~SharedStream() { munmap(words_, bytes_); }

ssize_t SharedStream::receive(uint8_t *to, size_t room) {
  const size_t got = requests_.read(to, room);
  if (got > 0) {
    wake_client(wants_room);
    return static_cast<ssize_t>(got);
  }
  if (gone_) return 0;
  errno = requests_.broken() ? EPROTO : EAGAIN;
  return -1;
}

ssize_t SharedStream::send(const uint8_t *from, size_t count) {
  const size_t put = replies_.write(from, count);
  if (put > 0) {
    wake_client(wants_bytes);
    return static_cast<ssize_t>(put);
  }
  errno = replies_.broken() ? EPROTO : EAGAIN;
  return -1;
}

void SharedStream::end_sending() { shutdown(file_, SHUT_WR); }

bool SharedStream::drain_wakeups() {
  uint8_t bells[256];  // bounded: a client that floods the socket must not hold up others
  const ssize_t got = recv(file_, bells, sizeof bells, MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) gone_ = true;
  return !gone_;
}

bool SharedStream::arm_wakeup(uint32_t wants) {
  // Store, then look again, both sequentially consistent: see shared_layout.hpp. With weaker orders
  // the look may pass the store, and a wake-up be lost.
  words_->server_wants.store(wants, std::memory_order_seq_cst);
  return !((wants & wants_bytes && readable()) || (wants & wants_room && writable()));
}

void SharedStream::wake_client(uint32_t wanted) {
  if (words_->client_wants.load(std::memory_order_seq_cst) != wanted) return;
  words_->client_wants.store(0, std::memory_order_seq_cst);
  futex_wake(&words_->client_wants);
}

}  // namespace accel_rl::replay
