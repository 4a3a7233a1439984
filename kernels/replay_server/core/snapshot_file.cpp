#include "snapshot_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "generations.hpp"
#include "snapshot_format.hpp"

namespace accel_rl::replay {

namespace {

// Open it for this process alone: -1 with errno, EWOULDBLOCK if another one writes it. A link that
// somebody has put there is not followed: what it points to would be emptied.
int open_alone(const std::string &path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return -1;
  struct stat opened, named;
  bool is_ours = ::flock(file, LOCK_EX | LOCK_NB) == 0;
  // Whoever had it may have renamed it just now: then it is the finished snapshot.
  is_ours = is_ours && ::fstat(file, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
            opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
  if (is_ours && ::ftruncate(file, 0) == 0) return file;
  ::close(file);
  errno = EWOULDBLOCK;
  return -1;
}

}  // namespace

Status SnapshotFile::checked(Status status) {
  if (status != Status::ok) abandon();
  return status;
}

Status SnapshotFile::open(const std::string &path, uint64_t serial, uint32_t kept,
                          std::string *why) {
  path_ = path, temporary_ = path + ".partial", kept_ = kept;
  const int file = open_alone(temporary_);
  if (file < 0 && errno == EWOULDBLOCK) {
    if (why) *why = temporary_ + " is being written";
    return Status::busy;
  }
  if (file < 0) return system_error("cannot open " + temporary_, why);
  return checked(file_.begin(file, temporary_, snapshot::magic, serial, why));
}

Status SnapshotFile::add(Block *block, std::string *why) { return checked(file_.add(block, why)); }

Status SnapshotFile::finish(std::string *why) {
  Block last{snapshot::end, std::vector<std::byte>(block_head_bytes)};
  put(&last.bytes, file_.blocks());
  Status status = add(&last, why);
  if (status == Status::ok) status = checked(file_.sync(why));
  if (status == Status::ok) status = checked(take_place(temporary_, path_, kept_, why));
  file_.close();
  return status;
}

void SnapshotFile::abandon() {
  if (!is_open()) return;
  ::unlink(temporary_.c_str());
  file_.close();
}

}  // namespace accel_rl::replay
