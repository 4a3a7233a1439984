#include "log.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "../core/folder.hpp"
#include "../core/generations.hpp"

namespace accel_rl::replay {

namespace {

constexpr size_t enough_bytes = size_t{4} << 20;  // to be written before the interval is over
constexpr size_t most_bytes = size_t{64} << 20;   // that wait for the disk

}  // namespace

Log::~Log() {
  if (!active()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
  }
  come_.notify_one();
  thread_.join();
}

void Log::begin(const std::string &path, uint64_t serial, uint32_t sync_ms) {
  path_ = path, interval_ = std::chrono::milliseconds(sync_ms);
  begin_piece(true, serial);
  thread_ = std::thread([this] { write(); });
}

void Log::begin_piece(bool begins, uint64_t serial) {
  pieces_.emplace_back();
  pieces_.back().begins = begins, pieces_.back().serial = serial;
  spare_.resize(block_head_bytes);
  pieces_.back().block = {log_format::records, std::move(spare_)};
  spare_.clear();
}

void Log::add(log_format::Kind kind, const void *payload, size_t bytes) {
  std::unique_lock<std::mutex> lock(mutex_);
  room_.wait(lock, [&] { return waiting_ < most_bytes || !trouble_.empty(); });
  if (!trouble_.empty()) return;
  const bool first = pieces_.empty();
  if (first) begin_piece(false, 0);
  std::vector<std::byte> &to = pieces_.back().block.bytes;
  const size_t before = to.size();
  put(&to, static_cast<uint32_t>(kind));
  put(&to, static_cast<uint32_t>(bytes));
  put_bytes(&to, payload, bytes);
  waiting_ += to.size() - before, bytes_ += to.size() - before, ++added_;
  if (first || waiting_ >= enough_bytes) come_.notify_one();
}

void Log::turn(uint64_t serial) {
  const std::lock_guard<std::mutex> lock(mutex_);
  begin_piece(true, serial);
  bytes_ = 0;
  if (trouble_before_.empty()) trouble_before_ = trouble_;
  trouble_.clear();
  come_.notify_one();
}

void Log::turned() {
  const std::lock_guard<std::mutex> lock(mutex_);
  trouble_before_.clear();
  failed_ = !trouble_.empty();
}

void Log::hurry() {
  const std::lock_guard<std::mutex> lock(mutex_);
  flush_ = true;
  come_.notify_one();
}

void Log::flush() {
  if (!active()) return;
  hurry();
  std::unique_lock<std::mutex> lock(mutex_);
  room_.wait(lock, [&] { return !flush_; });
}

std::string Log::trouble() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return trouble_.empty() ? trouble_before_ : trouble_;
}

void Log::write() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  using Clock = std::chrono::steady_clock;
  bool unsynced = false;
  auto due = Clock::now() + interval_;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    come_.wait(lock, [&] { return over_ || flush_ || unsynced || !pieces_.empty(); });
    come_.wait_until(lock, due, [&] { return over_ || flush_ || waiting_ >= enough_bytes; });
    const bool last = over_, flushed = flush_, is_due = last || flushed || Clock::now() >= due;
    std::deque<Piece> taken;
    taken.swap(pieces_);
    const uint64_t added = added_;
    waiting_ = 0;
    room_.notify_all();
    lock.unlock();
    Status status = Status::ok;
    std::string why, before;  // of this segment, and of one that ended meanwhile
    try {
      for (Piece &piece : taken) {
        if (piece.begins && status != Status::ok) status = Status::ok, before = why;
        if (status == Status::ok) status = write(&piece, &unsynced, &why);
      }
      if (status == Status::ok && is_due && unsynced) status = file_.sync(&why);
    } catch (const std::exception &error) {
      status = Status::io_error, why = error.what();
    }
    if (is_due && status == Status::ok) synced_ = added;
    if (is_due) unsynced = false, due = Clock::now() + interval_;
    lock.lock();
    if (!taken.empty()) spare_ = std::move(taken.back().block.bytes);
    if (status != Status::ok) give_up(why);
    if (!before.empty()) trouble_before_ = before, failed_ = true;
    if (flushed) flush_ = false, room_.notify_all();
    if (last) return;
  }
}

// Drop what waits, but for a segment that has begun meanwhile.
void Log::give_up(const std::string &why) {
  const auto begins = [](const Piece &piece) { return piece.begins; };
  const auto next = std::find_if(pieces_.begin(), pieces_.end(), begins);
  (next == pieces_.end() ? trouble_ : trouble_before_) = why;
  failed_ = true;
  pieces_.erase(pieces_.begin(), next);
  waiting_ = 0;
  room_.notify_all();
}

Status Log::write(Piece *piece, bool *unsynced, std::string *why) {
  if (piece->begins) {
    Status status = Status::ok;
    if (file_.is_open() && *unsynced) status = file_.sync(why);
    if (status == Status::ok) status = begin_segment(piece->serial, why);
    if (status != Status::ok) return status;
    *unsynced = true;
  }
  if (piece->block.bytes.size() == block_head_bytes) return Status::ok;
  *unsynced = true;
  return file_.add(&piece->block, why);
}

Status Log::begin_segment(uint64_t serial, std::string *why) {
  const std::string name = segment_of(path_, serial);
  const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return system_error("cannot create " + name, why);
  const Status status = file_.begin(file, name, log_format::magic, serial, why);
  if (status != Status::ok) return status;
  return sync_folder_of(path_) ? Status::ok
                               : system_error("cannot sync the folder of " + name, why);
}

}  // namespace accel_rl::replay
