// A file of blocks behind a header, with checksums of each head and payload: what snapshots and
// logs are.

#ifndef ACCEL_RL_REPLAY_BLOCK_FILE_HPP
#define ACCEL_RL_REPLAY_BLOCK_FILE_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "status.hpp"

namespace accel_rl::replay {

constexpr uint32_t block_format = 2;
constexpr size_t file_head_bytes = 24;   // magic, format, serial, checksum of these
constexpr size_t block_head_bytes = 24;  // kind, 4 unused, payload's bytes and checksum, checksum

struct Block {
  uint32_t kind = 0;
  std::vector<std::byte> bytes;  // room for its head, then the payload
};

// `why`, if not null, says more of what is not ok.
class BlockFile {
 public:
  BlockFile() = default;
  ~BlockFile() { close(); }
  BlockFile(const BlockFile &) = delete;
  BlockFile &operator=(const BlockFile &) = delete;

  // Takes over a file that is open and empty. `serial` tells files of one kind apart.
  Status begin(int file, const std::string &name, uint64_t magic, uint64_t serial,
               std::string *why);
  bool is_open() const { return file_ >= 0; }
  Status add(Block *block, std::string *why);
  Status sync(std::string *why);  // wait for the disk
  void close();
  uint64_t bytes() const { return bytes_; }  // written
  uint64_t blocks() const { return blocks_; }

 private:
  Status fail(const char *what, std::string *why) const;

  std::string name_;
  int file_ = -1;
  uint64_t blocks_ = 0, bytes_ = 0, started_writeback_ = 0;
};

// io_error with what the system says of it.
Status system_error(const std::string &what, std::string *why);

}  // namespace accel_rl::replay

#endif
