// Tables and mailbox in one file, written in slices between which service goes on.

#ifndef ACCEL_RL_REPLAY_SNAPSHOT_HPP
#define ACCEL_RL_REPLAY_SNAPSHOT_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mailbox.hpp"
#include "status.hpp"
#include "table.hpp"

namespace accel_rl::replay {

// Writes what tables and mailbox held at begin(), whatever changes meanwhile, under another name
// in the same folder, and gives it its name only once it is complete and on the disk. The tables
// must outlive it. Given up, or killed, it leaves an older file of that name as it is.
class SnapshotWriter {
 public:
  SnapshotWriter() = default;
  ~SnapshotWriter() { abandon(); }
  SnapshotWriter(const SnapshotWriter &) = delete;
  SnapshotWriter &operator=(const SnapshotWriter &) = delete;

  // ok, busy, io_error or out_of_memory. `why`, if not null, says more, here and below.
  Status begin(const std::string &path, const std::vector<Table *> &tables, const Mailbox *mailbox,
               std::string *why);
  // Write about `bytes` more, a block at least: ok, or io_error, which abandons it.
  Status step(size_t bytes, std::string *why);
  // Whether all is written, and tables are no longer looked at.
  bool written() const { return stage_ == Stage::written; }
  // Wait for the disk, then give the file its name. Touches no table: a server may call this, and
  // only this, from another thread.
  Status finish(std::string *why);
  void abandon();

 private:
  enum class Stage : uint8_t { idle, rows, mail, written };

  void put_table(uint32_t index);
  Status write_rows(std::string *why);
  Status write_mail(std::string *why);
  Status write_block(uint32_t kind, std::string *why);
  Status fail(const char *what, std::string *why);

  Stage stage_ = Stage::idle;
  std::string path_, temporary_;
  int file_ = -1;
  uint64_t blocks_ = 0, started_writeback_ = 0, offset_ = 0;
  std::vector<Table *> tables_;
  std::vector<uint32_t> sizes_;  // when it began
  Messages messages_;
  Messages::const_iterator message_;
  size_t message_offset_ = 0;
  uint32_t table_ = 0, slot_ = 0;
  std::vector<std::byte> block_;
};

// Reads a file back: io_error, damaged, truncated, newer_format, limit (more than `most_bytes` of
// tables) or out_of_memory leave the results as they were. `mailbox` may be null.
Status restore_snapshot(const std::string &path, uint64_t most_bytes,
                        std::vector<std::unique_ptr<Table>> *tables, Mailbox *mailbox,
                        std::string *why);

}  // namespace accel_rl::replay

#endif
