// The file of a snapshot while it is written, under another name in the same folder: it gets its
// own only once it is complete and on the disk. Given up, or killed, it leaves an older one as it
// is.

#ifndef ACCEL_RL_REPLAY_SNAPSHOT_FILE_HPP
#define ACCEL_RL_REPLAY_SNAPSHOT_FILE_HPP

#include <cstddef>
#include <cstdint>
#include <string>

#include "block_file.hpp"

namespace accel_rl::replay {

// `why`, if not null, says more of what is not ok. A failure abandons it.
class SnapshotFile {
 public:
  SnapshotFile() = default;
  ~SnapshotFile() { abandon(); }
  SnapshotFile(const SnapshotFile &) = delete;
  SnapshotFile &operator=(const SnapshotFile &) = delete;

  // ok, busy if another process writes it, or io_error. So many snapshots are `kept`, this one
  // included; its serial is higher than theirs.
  Status open(const std::string &path, uint64_t serial, uint32_t kept, std::string *why);
  bool is_open() const { return file_.is_open(); }
  Status add(Block *block, std::string *why);
  // Write the last block, wait for the disk, then give the file its name.
  Status finish(std::string *why);
  void abandon();
  uint64_t bytes() const { return file_.bytes(); }  // written

 private:
  Status checked(Status status);

  std::string path_, temporary_;
  BlockFile file_;
  uint32_t kept_ = 1;
};

}  // namespace accel_rl::replay

#endif
