// A snapshot while service goes on: slices between requests, then the disk is waited for elsewhere.

#ifndef ACCEL_RL_REPLAY_SERVER_SNAPSHOTS_HPP
#define ACCEL_RL_REPLAY_SERVER_SNAPSHOTS_HPP

#include <atomic>
#include <memory>
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
  ~Snapshots() { wait(); }

  bool active() const { return stage_ != Stage::idle; }
  // Whether work() has something to write now; otherwise the disk is waited for.
  bool writing() const { return stage_ == Stage::slices; }

  // last() is then of this one.
  Status begin(const std::string &path, const std::vector<Table *> &tables, const Mailbox *mailbox,
               std::string *why);
  // Write a slice. True when the snapshot has ended, which last() then tells.
  bool work();
  // Until the disk is no longer waited for.
  void wait();

  // How the newest one ends. Whoever waits for it keeps this, as another one may begin.
  std::shared_ptr<const SnapshotEnd> last() const { return last_; }

 private:
  enum class Stage : uint8_t { idle, slices, disk };

  bool slice();
  void finish();  // in the thread
  bool end(Status status, const std::string &why);

  static constexpr size_t slice_bytes = size_t{1} << 20;  // about a millisecond
  Stage stage_ = Stage::idle;
  SnapshotWriter writer_;
  std::thread thread_;
  std::atomic<bool> done_{false};
  Status result_ = Status::ok;  // of the thread
  std::string why_;
  std::shared_ptr<SnapshotEnd> last_;
};

}  // namespace accel_rl::replay

#endif
