#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "snapshot.hpp"
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

// Open it for this process alone: -1 with errno, EWOULDBLOCK if another one writes it.
int open_alone(const std::string &path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
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

std::string folder_of(const std::string &path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

Status SnapshotWriter::fail(const char *what, std::string *why) {
  const std::string message = std::string("cannot ") + what + " " + temporary_ + ": " +
                              std::strerror(errno);
  abandon();
  return say(Status::io_error, message, why);
}

Status SnapshotWriter::begin(const std::string &path, const std::vector<Table *> &tables,
                             const Mailbox *mailbox, std::string *why) {
  if (stage_ != Stage::idle) return say(Status::busy, "a snapshot is being written", why);
  for (const Table *table : tables)
    if (table->shadow_.active()) return say(Status::busy, "a snapshot is being written", why);
  try {
    path_ = path, temporary_ = path + ".partial";
    file_ = open_alone(temporary_);
    if (file_ < 0 && errno == EWOULDBLOCK)
      return say(Status::busy, temporary_ + " is being written", why);
    if (file_ < 0) return fail("open", why);
    stage_ = Stage::rows;
    blocks_ = offset_ = started_writeback_ = 0;
    table_ = slot_ = 0, message_offset_ = 0;
    sizes_.clear();
    for (Table *table : tables) {
      if (!table->shadow_.begin(table->config_, table->size_, table->weighted())) {
        abandon();
        return say(Status::out_of_memory, "no memory to keep what changes meanwhile", why);
      }
      tables_.push_back(table);
      sizes_.push_back(table->size_);
    }
    messages_ = mailbox ? mailbox->messages() : Messages();
    message_ = messages_.begin();
    block_.clear();
    snapshot::put_header(&block_);
    if (!write_all(file_, block_.data(), block_.size())) return fail("write", why);
    offset_ = block_.size();
    for (uint32_t k = 0; k < tables_.size(); ++k) {
      put_table(k);
      const Status status = write_block(snapshot::table, why);
      if (status != Status::ok) return status;
    }
    return Status::ok;
  } catch (const std::bad_alloc &) {
    abandon();
    return Status::out_of_memory;
  }
}

void SnapshotWriter::put_table(uint32_t index) {
  const Table &table = *tables_[index];
  block_.assign(snapshot::head_bytes, std::byte{0});
  snapshot::put_config(&block_, table.config_);
  put(&block_, table.size_);
  put(&block_, table.cursor_);
  put(&block_, table.highest_priority_);
  for (const uint64_t counter : {table.limiter_.inserts(), table.limiter_.samples(), table.updates_,
                                 table.stale_, table.refused_, table.waited_})
    put(&block_, counter);
}

// Write block_, whose payload stands behind room for its head.
Status SnapshotWriter::write_block(uint32_t kind, std::string *why) {
  const size_t count = block_.size() - snapshot::head_bytes;
  snapshot::fill_block_head(block_.data(), kind, block_.data() + snapshot::head_bytes, count);
  if (!write_all(file_, block_.data(), block_.size())) return fail("write", why);
  ++blocks_;
  offset_ += block_.size();
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

Status SnapshotWriter::step(size_t bytes, std::string *why) {
  try {
    Status status = Status::ok;
    const uint64_t aim = offset_ + bytes;
    do {
      if (stage_ == Stage::rows) status = write_rows(why);
      else if (stage_ == Stage::mail) status = write_mail(why);
    } while (status == Status::ok && offset_ < aim &&
             (stage_ == Stage::rows || stage_ == Stage::mail));
    return status;
  } catch (const std::bad_alloc &) {
    abandon();
    return say(Status::out_of_memory, "no memory for a block", why);
  }
}

Status SnapshotWriter::write_rows(std::string *why) {
  if (table_ == tables_.size()) {
    stage_ = Stage::mail;
    return Status::ok;
  }
  Table &table = *tables_[table_];
  const Store &store = table.store_;
  const Shadow &shadow = table.shadow_;
  const size_t item = table.config_.item_bytes() + (table.weighted() ? 8 : 4);
  const auto most = static_cast<uint32_t>(std::max<size_t>(snapshot::part_bytes / item, 1));
  const uint32_t first = slot_, count = std::min(most, sizes_[table_] - first);
  if (count > 0) {
    block_.resize(snapshot::head_bytes);
    put(&block_, table_);
    put(&block_, first);
    put(&block_, count);
    const size_t begin = block_.size();
    block_.resize(begin + count * item);
    std::byte *to = block_.data() + begin;
    for (size_t k = 0; k < store.columns(); to += count * store.bytes_of(k), ++k)
      shadow.rows(store, k, first, count, to);
    shadow.generations(store, first, count, to);
    to += count * sizeof(uint32_t);
    if (table.weighted()) shadow.weights(table.tree_, first, count, to);
    const Status status = write_block(snapshot::rows, why);
    if (status != Status::ok) return status;
  }
  slot_ = first + count;
  table.shadow_.passed(slot_);
  if (slot_ == sizes_[table_]) {
    table.shadow_.end();
    ++table_, slot_ = 0;
  }
  return Status::ok;
}

Status SnapshotWriter::write_mail(std::string *why) {
  block_.assign(snapshot::head_bytes, std::byte{0});
  if (message_ == messages_.end()) {
    put(&block_, blocks_);
    const Status status = write_block(snapshot::end, why);
    if (status != Status::ok) return status;
    stage_ = Stage::written;
    tables_.clear(), messages_.clear(), block_ = {};
    return Status::ok;
  }
  const Message &message = *message_->second;
  const size_t count = std::min(snapshot::part_bytes, message.bytes.size() - message_offset_);
  put_text(&block_, message_->first);
  put(&block_, message.version);
  put(&block_, uint64_t{message.bytes.size()});
  put(&block_, uint64_t{message_offset_});
  put_bytes(&block_, message.bytes.data() + message_offset_, count);
  const Status status = write_block(snapshot::mail, why);
  if (status != Status::ok) return status;
  message_offset_ += count;
  if (message_offset_ == message.bytes.size()) ++message_, message_offset_ = 0;
  return Status::ok;
}

Status SnapshotWriter::finish(std::string *why) {
  if (stage_ != Stage::written) return say(Status::io_error, "the snapshot is not complete", why);
  if (::fsync(file_) != 0) return fail("sync", why);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return fail("rename", why);
  ::close(file_);
  file_ = -1, stage_ = Stage::idle;
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = folder >= 0 && ::fsync(folder) == 0;
  const int error = errno;
  if (folder >= 0) ::close(folder);
  if (synced) return Status::ok;
  return say(Status::io_error,
             "cannot sync the folder of " + path_ + ": " + std::strerror(error), why);
}

void SnapshotWriter::abandon() {
  for (Table *table : tables_) table->shadow_.end();
  tables_.clear(), messages_.clear();
  if (file_ >= 0) {
    ::unlink(temporary_.c_str());
    ::close(file_);
  }
  file_ = -1, stage_ = Stage::idle;
}

}  // namespace accel_rl::replay
