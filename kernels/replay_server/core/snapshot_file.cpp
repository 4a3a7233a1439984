#include "snapshot_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "folder.hpp"
#include "snapshot_format.hpp"

namespace accel_rl::replay {

namespace {

Status say(Status status, const std::string &message, std::string *why) {
  if (why) *why = message;
  return status;
}

bool write_all(int file, const std::byte *bytes, size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(file, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written, count -= static_cast<size_t>(written);
  }
  return true;
}

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

Status SnapshotFile::fail(const char *what, std::string *why) {
  const std::string message =
      std::string("cannot ") + what + " " + temporary_ + ": " + std::strerror(errno);
  abandon();
  return say(Status::io_error, message, why);
}

Status SnapshotFile::open(const std::string &path, std::string *why) {
  path_ = path, temporary_ = path + ".partial";
  file_ = open_alone(temporary_);
  if (file_ < 0 && errno == EWOULDBLOCK)
    return say(Status::busy, temporary_ + " is being written", why);
  if (file_ < 0) return fail("open", why);
  blocks_ = started_writeback_ = 0;
  std::vector<std::byte> header;
  snapshot::put_header(&header);
  if (!write_all(file_, header.data(), header.size())) return fail("write", why);
  offset_ = header.size();
  return Status::ok;
}

Status SnapshotFile::add(SnapshotBlock *block, std::string *why) {
  std::vector<std::byte> &bytes = block->bytes;
  snapshot::fill_block_head(bytes.data(), block->kind, bytes.data() + snapshot::head_bytes,
                            bytes.size() - snapshot::head_bytes);
  if (!write_all(file_, bytes.data(), bytes.size())) return fail("write", why);
  ++blocks_;
  offset_ += bytes.size();
#ifdef __linux__
  // Let the disk begin, so that finish() has little to wait for. Advice only.
  constexpr uint64_t enough = uint64_t{8} << 20;
  if (offset_ - started_writeback_ >= enough) {
    (void)::sync_file_range(file_, static_cast<off_t>(started_writeback_),
                            static_cast<off_t>(offset_ - started_writeback_),
                            SYNC_FILE_RANGE_WRITE);
    started_writeback_ = offset_;
  }
#endif
  return Status::ok;
}

Status SnapshotFile::finish(std::string *why) {
  SnapshotBlock last{snapshot::end, std::vector<std::byte>(snapshot::head_bytes)};
  put(&last.bytes, blocks_);
  const Status status = add(&last, why);
  if (status != Status::ok) return status;
  if (::fsync(file_) != 0) return fail("sync", why);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return fail("rename", why);
  ::close(file_);
  file_ = -1;
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = folder >= 0 && ::fsync(folder) == 0;
  const int error = errno;
  if (folder >= 0) ::close(folder);
  if (synced) return Status::ok;
  return say(Status::io_error, "cannot sync the folder of " + path_ + ": " + std::strerror(error),
             why);
}

void SnapshotFile::abandon() {
  if (file_ < 0) return;
  ::unlink(temporary_.c_str());
  ::close(file_);
  file_ = -1;
}

}  // namespace accel_rl::replay
