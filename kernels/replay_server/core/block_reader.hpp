// Reads a file of blocks, and believes no byte of it before its checksum.

#ifndef ACCEL_RL_REPLAY_BLOCK_READER_HPP
#define ACCEL_RL_REPLAY_BLOCK_READER_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "block_file.hpp"

namespace accel_rl::replay {

class BlockReader {
 public:
  explicit BlockReader(const std::string &path) : path_(path) {}
  ~BlockReader();
  BlockReader(const BlockReader &) = delete;
  BlockReader &operator=(const BlockReader &) = delete;

  // ok, io_error, damaged, truncated or newer_format, here and below; why() says more. `kind` is
  // what the file should be, in words.
  Status open(uint64_t magic, const char *kind);
  Status next(Block *block);  // its bytes are the payload alone
  Status say(Status status, const std::string &message);

  const std::string &why() const { return why_; }
  uint64_t serial() const { return serial_; }
  uint64_t left() const { return left_; }    // bytes of the file
  uint64_t sound() const { return sound_; }  // bytes up to the end of the last block that was

 private:
  Status take(std::byte *bytes, uint64_t count);
  Status damaged(const std::string &what) { return say(Status::damaged, what); }

  std::string path_, why_;
  int file_ = -1;
  uint64_t left_ = 0, sound_ = 0, serial_ = 0;
};

}  // namespace accel_rl::replay

#endif
