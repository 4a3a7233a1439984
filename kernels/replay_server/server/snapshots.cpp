#include "snapshots.hpp"

namespace accel_rl::replay {

Status Snapshots::begin(const std::string &path, const std::vector<Table *> &tables,
                        const Mailbox *mailbox, std::string *why) {
  if (active()) {
    *why = "a snapshot is being written";
    return Status::busy;
  }
  const Status status = writer_.begin(path, tables, mailbox, why);
  if (status == Status::ok) stage_ = Stage::slices;
  return status;
}

bool Snapshots::work() {
  if (stage_ == Stage::slices) {
    why_.clear();
    result_ = writer_.step(slice_bytes, &why_);
    if (result_ != Status::ok) {
      stage_ = Stage::idle;
      return true;
    }
    if (!writer_.written()) return false;
    stage_ = Stage::disk;
    done_ = false;
    thread_ = std::thread([this] {
      result_ = writer_.finish(&why_);
      done_.store(true, std::memory_order_release);
    });
    return false;
  }
  if (stage_ != Stage::disk || !done_.load(std::memory_order_acquire)) return false;
  thread_.join();
  stage_ = Stage::idle;
  return true;
}

void Snapshots::wait() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace accel_rl::replay
