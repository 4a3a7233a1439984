// The file of a snapshot while it is written, under another name in the same folder: it gets its
// own only once it is complete and on the disk. Given up, or killed, it leaves an older one as it
// is.

#ifndef ACCEL_RL_REPLAY_SNAPSHOT_FILE_HPP
#define ACCEL_RL_REPLAY_SNAPSHOT_FILE_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "status.hpp"

namespace accel_rl::replay {

struct SnapshotBlock {
  uint32_t kind = 0;
  std::vector<std::byte> bytes;  // room for its head, then the payload
};

// `why`, if not null, says more of what is not ok. A failure abandons it.
class SnapshotFile {
 public:
  SnapshotFile() = default;
  ~SnapshotFile() { abandon(); }
  SnapshotFile(const SnapshotFile &) = delete;
  SnapshotFile &operator=(const SnapshotFile &) = delete;

  // ok, busy if another process writes it, or io_error.
  Status open(const std::string &path, std::string *why);
  bool is_open() const { return file_ >= 0; }
  Status add(SnapshotBlock *block, std::string *why);
  // Write the last block, wait for the disk, then give the file its name.
  Status finish(std::string *why);
  void abandon();
  uint64_t bytes() const { return offset_; }  // written

 private:
  Status fail(const char *what, std::string *why);

  std::string path_, temporary_;
  int file_ = -1;
  uint64_t blocks_ = 0, started_writeback_ = 0, offset_ = 0;
};

}  // namespace accel_rl::replay

#endif
