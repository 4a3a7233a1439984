// A snapshot while service goes on: the serving thread copies slices between requests, another one
// writes them and waits for the disk, however slow it is.

#ifndef ACCEL_RL_REPLAY_SERVER_SNAPSHOTS_HPP
#define ACCEL_RL_REPLAY_SERVER_SNAPSHOTS_HPP

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../core/snapshot.hpp"

namespace accel_rl::replay {

struct SnapshotEnd {
  bool over = false;
  Status status = Status::ok;
  std::string why;
};

class Snapshots {
 public:
  ~Snapshots();

  bool active() const { return thread_.joinable(); }
  // Whether work() has something to copy now; otherwise the disk is waited for.
  bool writing() const;

  // last() is then of this one. See SnapshotFile::open().
  Status begin(const std::string &path, uint64_t serial, uint32_t kept,
               const std::vector<Table *> &tables, const Mailbox *mailbox, std::string *why);
  // Copy a block, in some 10 us. True when the snapshot has ended, which last() then tells.
  bool work();

  // How the newest one ends. Whoever waits for it keeps this, as another one may begin.
  std::shared_ptr<const SnapshotEnd> last() const { return last_; }

 private:
  void write();  // in the thread
  Status write_blocks(std::string *why);
  bool has_room() const;

  SnapshotSource source_;
  SnapshotFile file_;  // of the thread while there is one
  std::thread thread_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable come_;
  std::deque<Block> blocks_;  // copied, not written
  size_t bytes_ = 0;          // of these
  bool complete_ = false;     // no more will come
  bool given_up_ = false;
  bool done_ = false;  // the thread is, and this is how it ended:
  Status result_ = Status::ok;
  std::string why_;
  std::shared_ptr<SnapshotEnd> last_;
};

}  // namespace accel_rl::replay

#endif
