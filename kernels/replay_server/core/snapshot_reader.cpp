#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "block_reader.hpp"
#include "snapshot.hpp"
#include "snapshot_format.hpp"

namespace accel_rl::replay {

// Reads blocks into tables and messages that nobody sees before the last one was right.
class SnapshotReader {
 public:
  SnapshotReader(const std::string &path, uint64_t most_bytes)
      : file_(path), most_bytes_(most_bytes) {}

  Status read();
  Status deliver(std::vector<std::unique_ptr<Table>> *tables, Mailbox *mailbox);
  const BlockReader &file() const { return file_; }

 private:
  Status say(Status status, const std::string &message) { return file_.say(status, message); }
  Status damaged(const char *what) { return say(Status::damaged, what); }
  Status read_table();
  Status read_removed();
  Status read_rows();
  Status read_mail();
  Status read_end();
  bool tables_are_full() const;

  BlockReader file_;
  uint64_t most_bytes_, bytes_ = 0, blocks_ = 0;
  Block block_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<uint32_t> read_;  // slots of each
  std::vector<std::pair<std::string, Message>> messages_;
  uint64_t message_bytes_ = 0;  // of the last one, when complete
};

Status SnapshotReader::read() {
  Status status = file_.open(snapshot::magic, "snapshot");
  while (status == Status::ok) {
    status = file_.next(&block_);
    if (status != Status::ok) break;
    if (block_.kind == snapshot::end) return read_end();
    ++blocks_;
    status = block_.kind == snapshot::table     ? read_table()
             : block_.kind == snapshot::removed ? read_removed()
             : block_.kind == snapshot::rows    ? read_rows()
             : block_.kind == snapshot::mail    ? read_mail()
                                                : damaged("a block of no known kind");
  }
  return status;
}

Status SnapshotReader::read_removed() {
  tables_.emplace_back();
  read_.push_back(0);
  return Status::ok;
}

Status SnapshotReader::read_table() {
  ByteReader reader(block_.bytes.data(), block_.bytes.size());
  const TableConfig config = snapshot::take_config(&reader);
  const auto size = reader.take<uint32_t>();
  const auto cursor = reader.take<uint32_t>();
  const auto highest = reader.take<float>();
  uint64_t counters[7];
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
  table->refused_ = counters[4], table->waited_ = counters[5], table->capped_ = counters[6];
  tables_.push_back(std::move(table));
  read_.push_back(0);
  return Status::ok;
}

Status SnapshotReader::read_rows() {
  ByteReader reader(block_.bytes.data(), block_.bytes.size());
  const auto index = reader.take<uint32_t>(), first = reader.take<uint32_t>(),
             count = reader.take<uint32_t>();
  if (!reader.ok() || index >= tables_.size() || !tables_[index] || first != read_[index] ||
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
  ByteReader reader(block_.bytes.data(), block_.bytes.size());
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
    if (tables_[k] && read_[k] != tables_[k]->size_) return false;
  return true;
}

Status SnapshotReader::read_end() {
  ByteReader reader(block_.bytes.data(), block_.bytes.size());
  const auto blocks = reader.take<uint64_t>();
  if (!reader.at_end() || blocks != blocks_ || !tables_are_full() || file_.left() != 0 ||
      (!messages_.empty() && messages_.back().second.bytes.size() != message_bytes_))
    return damaged("blocks are missing, or too many");
  for (const auto &table : tables_)
    if (table && table->weighted()) table->tree_.refresh();
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
                        std::string *why, uint64_t *serial) {
  try {
    SnapshotReader reader(path, most_bytes);
    Status status = reader.read();
    if (status == Status::ok) status = reader.deliver(tables, mailbox);
    if (why) *why = reader.file().why();
    if (serial) *serial = reader.file().serial();
    return status;
  } catch (const std::bad_alloc &) {
    return Status::out_of_memory;
  }
}

}  // namespace accel_rl::replay
