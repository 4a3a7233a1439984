#include "snapshots.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <exception>

namespace accel_rl::replay {

namespace {

constexpr int less_urgent = 10;
constexpr size_t queued_bytes = size_t{4} << 20;  // copied before the disk is waited for

}  // namespace

Snapshots::~Snapshots() {
  if (!active()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    given_up_ = !complete_;  // what is copied is finished
  }
  come_.notify_one();
  thread_.join();
}

bool Snapshots::has_room() const { return bytes_ < queued_bytes && !done_; }

bool Snapshots::writing() const {
  if (!source_.active()) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  return has_room();
}

Status Snapshots::begin(const std::string &path, uint64_t serial, uint32_t kept,
                        const std::vector<Table *> &tables, const Mailbox *mailbox,
                        std::string *why) {
  if (active()) {
    *why = "a snapshot is being written";
    return Status::busy;
  }
  try {
    auto last = std::make_shared<SnapshotEnd>();
    Status status = source_.begin(tables, mailbox, why);
    if (status == Status::ok) status = file_.open(path, serial, kept, why);
    if (status != Status::ok) {
      source_.end();
      return status;
    }
    complete_ = given_up_ = done_ = false;
    thread_ = std::thread([this] { write(); });
    last_ = std::move(last);
    return Status::ok;
  } catch (const std::exception &error) {  // no memory, or no thread
    source_.end();
    file_.abandon();
    *why = error.what();
    return Status::io_error;
  }
}

bool Snapshots::work() {
  std::string trouble;
  try {
    if (writing()) {
      Block block;
      source_.next(&block);
      const std::lock_guard<std::mutex> lock(mutex_);
      blocks_.push_back(std::move(block));
      bytes_ += blocks_.back().bytes.size();
      come_.notify_one();
    }
  } catch (const std::exception &error) {  // no memory: service goes on without a snapshot
    trouble = error.what();
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!trouble.empty()) given_up_ = true;
    if (!trouble.empty() || done_) source_.end();
    complete_ = !source_.active();
    come_.notify_one();
    if (!done_ && trouble.empty()) return false;
  }
  thread_.join();
  blocks_.clear(), bytes_ = 0;
  last_->status = trouble.empty() ? result_ : Status::io_error;
  last_->why = trouble.empty() ? why_ : trouble;
  last_->over = true;
  return true;
}

void Snapshots::write() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
#ifdef __linux__
  // Requests and their clients come first: of this thread alone, as Linux has it.
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), less_urgent);
#endif
  Status status;
  std::string why;
  try {
    status = write_blocks(&why);
  } catch (const std::exception &) {
    status = Status::out_of_memory;
  }
  file_.abandon();  // unless it is finished
  const std::lock_guard<std::mutex> lock(mutex_);
  result_ = status;
  why_ = std::move(why);
  done_ = true;
}

Status Snapshots::write_blocks(std::string *why) {
  for (;;) {
    Block block;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      come_.wait(lock, [this] { return !blocks_.empty() || complete_ || given_up_; });
      if (given_up_) return Status::io_error;
      if (blocks_.empty()) break;
      block = std::move(blocks_.front());
      blocks_.pop_front();
      bytes_ -= block.bytes.size();
    }
    const Status status = file_.add(&block, why);
    if (status != Status::ok) return status;
  }
  return file_.finish(why);
}

}  // namespace accel_rl::replay
