// A snapshot while service goes on: slices between requests, then the disk is waited for elsewhere.

#ifndef ACCEL_RL_REPLAY_SERVER_SNAPSHOTS_HPP
#define ACCEL_RL_REPLAY_SERVER_SNAPSHOTS_HPP

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "../core/snapshot.hpp"

namespace accel_rl::replay {

class Snapshots {
 public:
  ~Snapshots() { wait(); }

  bool active() const { return stage_ != Stage::idle; }
  // Whether work() has something to write now; otherwise the disk is waited for.
  bool writing() const { return stage_ == Stage::slices; }

  Status begin(const std::string &path, const std::vector<Table *> &tables, const Mailbox *mailbox,
               std::string *why);
  // Write a slice. True when the snapshot has ended, with `result` and `why`.
  bool work();
  // Until the disk is no longer waited for.
  void wait();

  Status result() const { return result_; }
  const std::string &why() const { return why_; }

 private:
  enum class Stage : uint8_t { idle, slices, disk };

  static constexpr size_t slice_bytes = size_t{1} << 20;  // about a millisecond
  Stage stage_ = Stage::idle;
  SnapshotWriter writer_;
  std::thread thread_;
  std::atomic<bool> done_{false};
  Status result_ = Status::ok;
  std::string why_;
};

}  // namespace accel_rl::replay

#endif
