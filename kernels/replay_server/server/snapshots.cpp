#include "snapshots.hpp"

#include <exception>

namespace accel_rl::replay {

Status Snapshots::begin(const std::string &path, const std::vector<Table *> &tables,
                        const Mailbox *mailbox, std::string *why) {
  if (active()) {
    *why = "a snapshot is being written";
    return Status::busy;
  }
  auto last = std::make_shared<SnapshotEnd>();
  const Status status = writer_.begin(path, tables, mailbox, why);
  if (status != Status::ok) return status;
  last_ = std::move(last);
  stage_ = Stage::slices;
  return status;
}

bool Snapshots::end(Status status, const std::string &why) {
  stage_ = Stage::idle;
  last_->over = true;
  last_->status = status;
  last_->why = why;
  return true;
}

bool Snapshots::work() {
  if (stage_ == Stage::slices) return slice();
  if (stage_ != Stage::disk || !done_.load(std::memory_order_acquire)) return false;
  thread_.join();
  return end(result_, why_);
}

bool Snapshots::slice() {
  try {
    why_.clear();
    const Status status = writer_.step(slice_bytes, &why_);
    if (status != Status::ok) return end(status, why_);
    if (!writer_.written()) return false;
    done_ = false;
    thread_ = std::thread([this] { finish(); });
    stage_ = Stage::disk;
    return false;
  } catch (const std::exception &error) {  // no memory, or no thread: service goes on without
    writer_.abandon();
    return end(Status::io_error, error.what());
  }
}

void Snapshots::finish() {
  try {
    result_ = writer_.finish(&why_);
  } catch (const std::exception &) {
    result_ = Status::out_of_memory;
  }
  done_.store(true, std::memory_order_release);
}

void Snapshots::wait() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace accel_rl::replay
