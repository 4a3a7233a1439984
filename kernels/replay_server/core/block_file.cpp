#include "block_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "bytes.hpp"
#include "crc32c.hpp"

namespace accel_rl::replay {

namespace {

bool write_all(int file, const std::byte *bytes, size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(file, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written, count -= static_cast<size_t>(written);
  }
  return true;
}

void fill_head(std::byte *head, uint32_t kind, const std::byte *payload, uint64_t count) {
  const uint32_t unused = 0, sum = crc32c(payload, count);
  std::memcpy(head, &kind, 4);
  std::memcpy(head + 4, &unused, 4);
  std::memcpy(head + 8, &count, 8);
  std::memcpy(head + 16, &sum, 4);
  const uint32_t head_sum = crc32c(head, block_head_bytes - 4);
  std::memcpy(head + 20, &head_sum, 4);
}

}  // namespace

Status system_error(const std::string &what, std::string *why) {
  if (why) *why = what + ": " + std::strerror(errno);
  return Status::io_error;
}

Status BlockFile::fail(const char *what, std::string *why) const {
  return system_error(std::string("cannot ") + what + " " + name_, why);
}

Status BlockFile::begin(int file, const std::string &name, uint64_t magic, uint64_t serial,
                        std::string *why) {
  close();
  file_ = file, name_ = name;
  blocks_ = started_writeback_ = 0;
  std::vector<std::byte> header;
  put(&header, magic);
  put(&header, block_format);
  put(&header, serial);
  put(&header, crc32c(header.data(), header.size()));
  bytes_ = header.size();
  return write_all(file_, header.data(), header.size()) ? Status::ok : fail("write", why);
}

Status BlockFile::add(Block *block, std::string *why) {
  std::vector<std::byte> &bytes = block->bytes;
  fill_head(bytes.data(), block->kind, bytes.data() + block_head_bytes,
            bytes.size() - block_head_bytes);
  if (!write_all(file_, bytes.data(), bytes.size())) return fail("write", why);
  ++blocks_;
  bytes_ += bytes.size();
#ifdef __linux__
  // Let the disk begin, so that sync() has little to wait for. Advice only.
  constexpr uint64_t enough = uint64_t{8} << 20;
  if (bytes_ - started_writeback_ >= enough) {
    (void)::sync_file_range(file_, static_cast<off_t>(started_writeback_),
                            static_cast<off_t>(bytes_ - started_writeback_), SYNC_FILE_RANGE_WRITE);
    started_writeback_ = bytes_;
  }
#endif
  return Status::ok;
}

Status BlockFile::sync(std::string *why) {
  return ::fdatasync(file_) == 0 ? Status::ok : fail("sync", why);
}

void BlockFile::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

}  // namespace accel_rl::replay
