#include "block_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bytes.hpp"
#include "crc32c.hpp"

namespace accel_rl::replay {

BlockReader::~BlockReader() {
  if (file_ >= 0) ::close(file_);
}

Status BlockReader::say(Status status, const std::string &message) {
  why_ = path_ + ": " + message;
  return status;
}

Status BlockReader::take(std::byte *bytes, uint64_t count) {
  if (count > left_) return say(Status::truncated, "the file ends within a block");
  while (count > 0) {
    const ssize_t some = ::read(file_, bytes, count);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) return say(Status::io_error, std::strerror(errno));
    if (some == 0) return say(Status::truncated, "the file ends within a block");
    bytes += some, count -= static_cast<uint64_t>(some), left_ -= static_cast<uint64_t>(some);
  }
  return Status::ok;
}

Status BlockReader::open(uint64_t magic, const char *kind) {
  file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer
  struct stat status_of;
  if (file_ < 0 || ::fstat(file_, &status_of) != 0)
    return say(Status::io_error, std::strerror(errno));
  if (!S_ISREG(status_of.st_mode)) return say(Status::io_error, "not a regular file");
  left_ = static_cast<uint64_t>(status_of.st_size);
  const std::string never = std::string("not a ") + kind;
  std::byte header[file_head_bytes];
  // What is cut short is told from what never was one by as much of the magic as is there.
  if (const uint64_t all = left_; all < sizeof header) {
    const Status status = take(header, all);
    if (status != Status::ok) return status;
    const bool begins = std::memcmp(header, &magic, std::min(all, uint64_t{8})) == 0;
    return begins ? say(Status::truncated, "the file ends within its header") : damaged(never);
  }
  const Status status = take(header, sizeof header);
  if (status != Status::ok) return status;
  ByteReader reader(header, sizeof header);
  const auto found = reader.take<uint64_t>();
  const auto format = reader.take<uint32_t>();
  serial_ = reader.take<uint64_t>();
  if (found != magic) return damaged(never);
  if (reader.take<uint32_t>() != crc32c(header, sizeof header - 4))
    return damaged("the header's checksum is wrong");
  if (format != block_format)
    return say(Status::newer_format, "format " + std::to_string(format) + ", this program reads " +
                                         std::to_string(block_format));
  sound_ = sizeof header;
  return Status::ok;
}

Status BlockReader::next(Block *block) {
  std::byte head[block_head_bytes];
  Status status = take(head, sizeof head);
  if (status != Status::ok) return status;
  ByteReader reader(head, sizeof head);
  block->kind = reader.take<uint32_t>();
  (void)reader.take<uint32_t>();
  const auto count = reader.take<uint64_t>();
  const auto sum = reader.take<uint32_t>();
  if (reader.take<uint32_t>() != crc32c(head, sizeof head - 4))
    return damaged("the checksum of a block's head is wrong");
  if (count > left_) return say(Status::truncated, "the file ends within a block");
  block->bytes.resize(count);
  status = take(block->bytes.data(), count);
  if (status == Status::ok && crc32c(block->bytes.data(), count) != sum)
    return damaged("a block's checksum is wrong");
  if (status == Status::ok) sound_ += sizeof head + count;
  return status;
}

}  // namespace accel_rl::replay
