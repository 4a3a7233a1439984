// What tables and a mailbox held at one moment, as blocks of a snapshot, whatever changes
// meanwhile.

#ifndef ACCEL_RL_REPLAY_SNAPSHOT_SOURCE_HPP
#define ACCEL_RL_REPLAY_SNAPSHOT_SOURCE_HPP

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "mailbox.hpp"
#include "snapshot_file.hpp"
#include "status.hpp"
#include "table.hpp"

namespace accel_rl::replay {

// The tables must outlive it.
class SnapshotSource {
 public:
  SnapshotSource() = default;
  ~SnapshotSource() { end(); }
  SnapshotSource(const SnapshotSource &) = delete;
  SnapshotSource &operator=(const SnapshotSource &) = delete;

  // ok, busy or out_of_memory; `why`, if not null, says more. Tables by number, null where one was
  // removed; `mailbox` may be null.
  Status begin(const std::vector<Table *> &tables, const Mailbox *mailbox, std::string *why);
  // Whether there are blocks left.
  bool active() const { return active_; }
  // The next block, while active(); without memory for it std::bad_alloc is thrown.
  void next(Block *block);
  // Look at the tables no longer.
  void end();

 private:
  void put_table(uint32_t index, Block *block) const;
  void take_rows(Block *block);
  void take_mail(Block *block);
  void skip_done();

  bool active_ = false;
  std::deque<Block> first_;  // of the tables themselves, as they were
  std::vector<Table *> tables_;
  std::vector<uint32_t> sizes_;  // when it began
  Messages messages_;
  Messages::const_iterator message_;
  size_t message_offset_ = 0;
  uint32_t table_ = 0, slot_ = 0;
};

}  // namespace accel_rl::replay

#endif
