#include <new>

#include "snapshot.hpp"

namespace accel_rl::replay {

namespace {

Status say(Status status, const char *message, std::string *why) {
  if (why) *why = message;
  return status;
}

}  // namespace

Status SnapshotWriter::begin(const std::string &path, const std::vector<Table *> &tables,
                             const Mailbox *mailbox, std::string *why) {
  if (file_.is_open()) return say(Status::busy, "a snapshot is being written", why);
  Status status = source_.begin(tables, mailbox, why);
  if (status != Status::ok) return status;
  status = file_.open(path, 0, 1, why);
  if (status != Status::ok) source_.end();
  return status;
}

Status SnapshotWriter::step(size_t bytes, std::string *why) {
  const uint64_t aim = file_.bytes() + bytes;
  try {
    while (source_.active()) {
      source_.next(&block_);
      const Status status = file_.add(&block_, why);
      if (status != Status::ok) source_.end();
      if (status != Status::ok || file_.bytes() >= aim) return status;
    }
    return Status::ok;
  } catch (const std::bad_alloc &) {
    abandon();
    return say(Status::out_of_memory, "no memory for a block", why);
  }
}

Status SnapshotWriter::finish(std::string *why) {
  if (!written()) return say(Status::io_error, "the snapshot is not complete", why);
  return file_.finish(why);
}

void SnapshotWriter::abandon() {
  source_.end();
  file_.abandon();
}

}  // namespace accel_rl::replay
