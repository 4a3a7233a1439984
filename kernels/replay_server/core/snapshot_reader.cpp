#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <new>

#include "snapshot.hpp"
#include "snapshot_format.hpp"

namespace accel_rl::replay {

// Reads blocks into tables and messages that nobody sees before the last one was right.
class SnapshotReader {
 public:
  SnapshotReader(const std::string &path, uint64_t most_bytes)
      : path_(path), most_bytes_(most_bytes) {}
  ~SnapshotReader() {
    if (file_ >= 0) ::close(file_);
  }
  SnapshotReader(const SnapshotReader &) = delete;
  SnapshotReader &operator=(const SnapshotReader &) = delete;

  Status read();
  Status deliver(std::vector<std::unique_ptr<Table>> *tables, Mailbox *mailbox);
  std::string why;

 private:
  struct Part {
    uint64_t version, bytes;
  };

  Status say(Status status, const std::string &message) {
    why = path_ + ": " + message;
    return status;
  }
  Status damaged(const char *what) { return say(Status::damaged, what); }
  Status take(std::byte *bytes, uint64_t count);
  Status read_header();
  Status read_block(uint32_t *kind);
  Status read_table();
  Status read_rows();
  Status read_mail();
  Status read_end();
  bool tables_are_full() const;

  const std::string path_;
  uint64_t most_bytes_, bytes_ = 0, left_ = 0, blocks_ = 0;  // left_: of the file
  int file_ = -1;
  std::vector<std::byte> block_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<uint32_t> read_;  // slots of each
  std::vector<std::pair<std::string, Message>> messages_;
  uint64_t message_bytes_ = 0;  // of the last one, when complete
};

Status SnapshotReader::take(std::byte *bytes, uint64_t count) {
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

Status SnapshotReader::read_header() {
  file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer
  struct stat status_of;
  if (file_ < 0 || ::fstat(file_, &status_of) != 0)
    return say(Status::io_error, std::strerror(errno));
  if (!S_ISREG(status_of.st_mode)) return say(Status::io_error, "not a regular file");
  left_ = static_cast<uint64_t>(status_of.st_size);
  std::byte header[snapshot::head_bytes];
  // What is cut short is told from what never was one by as much of the magic as is there.
  if (const uint64_t all = left_; all < sizeof header) {
    const Status status = take(header, all);
    if (status != Status::ok) return status;
    const bool begins = std::memcmp(header, &snapshot::magic, std::min(all, uint64_t{8})) == 0;
    return begins ? say(Status::truncated, "the file ends within its header")
                  : damaged("not a snapshot");
  }
  const Status status = take(header, sizeof header);
  if (status != Status::ok) return status;
  ByteReader reader(header, sizeof header);
  const auto magic = reader.take<uint64_t>();
  const auto version = reader.take<uint32_t>();
  (void)reader.take<uint64_t>();
  if (magic != snapshot::magic) return damaged("not a snapshot");
  if (reader.take<uint32_t>() != crc32c(header, sizeof header - 4))
    return damaged("the header's checksum is wrong");
  if (version > snapshot::version)
    return say(Status::newer_format, "format " + std::to_string(version) + ", this program reads " +
                                         std::to_string(snapshot::version));
  return Status::ok;
}

Status SnapshotReader::read_block(uint32_t *kind) {
  std::byte head[snapshot::head_bytes];
  Status status = take(head, sizeof head);
  if (status != Status::ok) return status;
  ByteReader reader(head, sizeof head);
  *kind = reader.take<uint32_t>();
  (void)reader.take<uint32_t>();
  const auto count = reader.take<uint64_t>();
  const auto sum = reader.take<uint32_t>();
  if (reader.take<uint32_t>() != crc32c(head, sizeof head - 4))
    return damaged("the checksum of a block's head is wrong");
  if (count > left_) return say(Status::truncated, "the file ends within a block");
  block_.resize(count);
  status = take(block_.data(), count);
  if (status == Status::ok && crc32c(block_.data(), count) != sum)
    return damaged("a block's checksum is wrong");
  return status;
}

Status SnapshotReader::read() {
  Status status = read_header();
  while (status == Status::ok) {
    uint32_t kind = 0;
    status = read_block(&kind);
    if (status != Status::ok) break;
    if (kind == snapshot::end) return read_end();
    ++blocks_;
    status = kind == snapshot::table  ? read_table()
             : kind == snapshot::rows ? read_rows()
             : kind == snapshot::mail ? read_mail()
                                      : damaged("a block of no known kind");
  }
  return status;
}

Status SnapshotReader::read_table() {
  ByteReader reader(block_.data(), block_.size());
  const TableConfig config = snapshot::take_config(&reader);
  const auto size = reader.take<uint32_t>();
  const auto cursor = reader.take<uint32_t>();
  const auto highest = reader.take<float>();
  uint64_t counters[6];
  for (uint64_t &counter : counters) counter = reader.take<uint64_t>();
  std::string reason;
  if (!reader.at_end() || check(config, &reason) != Status::ok || size > config.capacity ||
      cursor >= config.capacity || !are_priorities(&highest, 1))
    return damaged("a table's configuration is not valid");
  const uint64_t bytes = Table::bytes_needed(config);
  if (bytes > most_bytes_ - bytes_)
    return say(Status::limit, "tables need more than " + std::to_string(most_bytes_) + " bytes");
  bytes_ += bytes;
  std::unique_ptr<Table> table;
  const Status status = Table::make(config, &table, &reason);
  if (status != Status::ok) return say(status, reason);
  table->size_ = size, table->cursor_ = cursor, table->highest_priority_ = highest;
  table->limiter_.restore(counters[0], counters[1]);
  table->updates_ = counters[2], table->stale_ = counters[3];
  table->refused_ = counters[4], table->waited_ = counters[5];
  tables_.push_back(std::move(table));
  read_.push_back(0);
  return Status::ok;
}

Status SnapshotReader::read_rows() {
  ByteReader reader(block_.data(), block_.size());
  const auto index = reader.take<uint32_t>(), first = reader.take<uint32_t>(),
             count = reader.take<uint32_t>();
  if (!reader.ok() || index >= tables_.size() || first != read_[index] ||
      count > tables_[index]->size_ - first)
    return damaged("rows are missing, or not in order");
  Table &table = *tables_[index];
  const size_t item = table.config_.item_bytes() + (table.weighted() ? 8 : 4);
  if (reader.left() != item * count) return damaged("rows of another length");
  for (size_t k = 0; k < table.store_.columns(); ++k) {
    const size_t bytes = count * table.store_.bytes_of(k);
    std::memcpy(table.store_.row(k, first), reader.take_bytes(bytes), bytes);
  }
  std::memcpy(table.store_.generations() + first, reader.take_bytes(count * sizeof(uint32_t)),
              count * sizeof(uint32_t));
  for (uint32_t k = 0; table.weighted() && k < count; ++k) {
    const auto weight = reader.take<float>();
    if (!are_priorities(&weight, 1)) return damaged("a weight is not a weight");
    table.tree_.set(first + k, weight);
  }
  read_[index] += count;
  return Status::ok;
}

Status SnapshotReader::read_mail() {
  ByteReader reader(block_.data(), block_.size());
  const std::string name = reader.take_text();
  const auto version = reader.take<uint64_t>(), total = reader.take<uint64_t>(),
             offset = reader.take<uint64_t>();
  if (!reader.ok()) return damaged("a message is not valid");
  if (offset == 0) {
    if (!messages_.empty() && messages_.back().second.bytes.size() != message_bytes_)
      return damaged("a message is not complete");
    messages_.emplace_back(name, Message{version, {}});
    message_bytes_ = total;
  }
  if (messages_.empty()) return damaged("a message does not begin");
  Message &message = messages_.back().second;
  if (messages_.back().first != name || message.version != version || message_bytes_ != total ||
      message.bytes.size() != offset || reader.left() > total - offset)
    return damaged("parts of a message do not fit");
  const size_t count = reader.left();
  put_bytes(&message.bytes, reader.take_bytes(count), count);
  return Status::ok;
}

bool SnapshotReader::tables_are_full() const {
  for (size_t k = 0; k < tables_.size(); ++k)
    if (read_[k] != tables_[k]->size_) return false;
  return true;
}

Status SnapshotReader::read_end() {
  ByteReader reader(block_.data(), block_.size());
  const auto blocks = reader.take<uint64_t>();
  if (!reader.at_end() || blocks != blocks_ || !tables_are_full() || left_ != 0 ||
      (!messages_.empty() && messages_.back().second.bytes.size() != message_bytes_))
    return damaged("blocks are missing, or too many");
  for (const auto &table : tables_)
    if (table->weighted()) table->tree_.refresh();
  return Status::ok;
}

Status SnapshotReader::deliver(std::vector<std::unique_ptr<Table>> *tables, Mailbox *mailbox) {
  if (mailbox) {
    Mailbox filled = mailbox->emptied();
    for (const auto &[name, message] : messages_) {
      const Status status =
          filled.publish(name, message.version, message.bytes.data(), message.bytes.size());
      if (status != Status::ok) return say(status, "message " + name + " cannot be kept");
    }
    *mailbox = std::move(filled);
  }
  *tables = std::move(tables_);
  return Status::ok;
}

Status restore_snapshot(const std::string &path, uint64_t most_bytes,
                        std::vector<std::unique_ptr<Table>> *tables, Mailbox *mailbox,
                        std::string *why) {
  try {
    SnapshotReader reader(path, most_bytes);
    Status status = reader.read();
    if (status == Status::ok) status = reader.deliver(tables, mailbox);
    if (why) *why = reader.why;
    return status;
  } catch (const std::bad_alloc &) {
    return Status::out_of_memory;
  }
}

}  // namespace accel_rl::replay
