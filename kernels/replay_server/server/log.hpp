// What changed since a snapshot, on the disk within an interval: requests as they came, written in
// groups by a thread of its own, so that no thread that serves waits for the disk.

#ifndef ACCEL_RL_REPLAY_SERVER_LOG_HPP
#define ACCEL_RL_REPLAY_SERVER_LOG_HPP

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../core/block_file.hpp"
#include "../core/bytes.hpp"

namespace accel_rl::replay {

namespace log_format {

constexpr uint64_t magic = UINT64_C(0x474F4C59504C5241);  // "ARLPYLOG"
constexpr uint32_t records = 1;                           // kind of a block: of all

// A record: kind, bytes, payload.
enum Kind : uint32_t {
  request = 1,  // a frame that changed something
  sampled = 2,  // table, number of items: what its limiter counts
  session = 3,  // token, and how its last requests ended
  ended = 4,    // token of a session that the client ended
  unused = 5    // 1 for a name in the mailbox, 0 for a table; its name: removed
};

}  // namespace log_format

class Log {
 public:
  ~Log();

  // Begin the segment `serial` of the log at `path`, in a thread that waits for the disk every
  // `sync_ms`. Throws std::system_error where there is no thread.
  void begin(const std::string &path, uint64_t serial, uint32_t sync_ms);
  bool active() const { return thread_.joinable(); }

  // Waits for the disk where more than it takes has come.
  void add(log_format::Kind kind, const void *payload, size_t bytes);
  // A snapshot of this serial begins: what comes now is a segment of its own.
  void turn(uint64_t serial);
  // The snapshot is there: what could not be kept before it is in it.
  void turned();

  // Have the disk take all that was added, without waiting for the interval.
  void hurry();
  // Wait until the disk has all that was added.
  void flush();
  // How many records were added, and how many of these the disk has.
  uint64_t added() const { return added_; }
  uint64_t synced() const { return synced_; }

  uint64_t bytes() const { return bytes_; }  // since the segment began
  // Whether changes cannot be kept, and are to be refused; and why.
  bool failed() const { return failed_; }
  std::string trouble() const;

 private:
  struct Piece {
    bool begins = false;  // a segment
    uint64_t serial = 0;  // of it
    Block block;
  };

  void write();  // in the thread
  Status write(Piece *piece, bool *unsynced, std::string *why);
  Status begin_segment(uint64_t serial, std::string *why);
  void begin_piece(bool begins, uint64_t serial);
  void give_up(const std::string &why);

  std::string path_;
  std::chrono::milliseconds interval_{0};
  uint64_t bytes_ = 0, added_ = 0;
  std::atomic<uint64_t> synced_{0};
  BlockFile file_;  // of the thread
  std::atomic<bool> failed_{false};
  std::thread thread_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable come_, room_;
  std::deque<Piece> pieces_;
  size_t waiting_ = 0;            // bytes of these
  std::vector<std::byte> spare_;  // memory of one that is written
  bool flush_ = false, over_ = false;
  std::string trouble_, trouble_before_;  // of this segment, and of those before it
};

}  // namespace accel_rl::replay

#endif
