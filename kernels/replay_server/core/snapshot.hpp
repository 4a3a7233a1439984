// Tables and mailbox in one file, written in slices between which service goes on.

#ifndef ACCEL_RL_REPLAY_SNAPSHOT_HPP
#define ACCEL_RL_REPLAY_SNAPSHOT_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "snapshot_file.hpp"
#include "snapshot_source.hpp"

namespace accel_rl::replay {

// Source and file in one thread: writes what tables and mailbox held at begin(). The tables must
// outlive it.
class SnapshotWriter {
 public:
  // ok, busy, io_error or out_of_memory. `why`, if not null, says more, here and below.
  Status begin(const std::string &path, const std::vector<Table *> &tables, const Mailbox *mailbox,
               std::string *why);
  // Write about `bytes` more, a block at least: ok, or io_error or out_of_memory, which abandon it.
  Status step(size_t bytes, std::string *why);
  // Whether all is written, and tables are no longer looked at.
  bool written() const { return file_.is_open() && !source_.active(); }
  // Wait for the disk, then give the file its name. Touches no table.
  Status finish(std::string *why);
  void abandon();

 private:
  SnapshotSource source_;
  SnapshotFile file_;
  Block block_;
};

// Reads a file back: io_error, damaged, truncated, newer_format, limit (more than `most_bytes` of
// tables) or out_of_memory leave the results as they were. Tables are by number, null where one was
// removed; `mailbox` and `serial` may be null.
Status restore_snapshot(const std::string &path, uint64_t most_bytes,
                        std::vector<std::unique_ptr<Table>> *tables, Mailbox *mailbox,
                        std::string *why, uint64_t *serial = nullptr);

}  // namespace accel_rl::replay

#endif
