#include "snapshot_source.hpp"

#include <algorithm>
#include <new>

#include "snapshot_format.hpp"

namespace accel_rl::replay {

Status SnapshotSource::begin(const std::vector<Table *> &tables, const Mailbox *mailbox,
                             std::string *why) {
  const auto busy = [](const Table *table) { return table && table->shadow_.active(); };
  if (active_ || std::any_of(tables.begin(), tables.end(), busy)) {
    if (why) *why = "a snapshot is being written";
    return Status::busy;
  }
  try {
    tables_.reserve(tables.size()), sizes_.reserve(tables.size());
    for (Table *table : tables) {
      if (table && !table->shadow_.begin(table->config_, table->size_, table->weighted()))
        throw std::bad_alloc();
      tables_.push_back(table);
      sizes_.push_back(table ? table->size_ : 0);
    }
    for (uint32_t k = 0; k < tables_.size(); ++k) {
      first_.emplace_back();
      put_table(k, &first_.back());
    }
    messages_ = mailbox ? mailbox->messages() : Messages();
  } catch (const std::bad_alloc &) {
    end();
    if (why) *why = "no memory to keep what changes meanwhile";
    return Status::out_of_memory;
  }
  message_ = messages_.begin();
  table_ = slot_ = 0, message_offset_ = 0;
  active_ = true;
  skip_done();
  return Status::ok;
}

void SnapshotSource::put_table(uint32_t index, Block *block) const {
  block->kind = tables_[index] ? snapshot::table : snapshot::removed;
  std::vector<std::byte> &bytes = block->bytes;
  bytes.assign(block_head_bytes, std::byte{0});
  if (!tables_[index]) return;
  const Table &table = *tables_[index];
  snapshot::put_config(&bytes, table.config_);
  put(&bytes, table.size_);
  put(&bytes, table.cursor_);
  put(&bytes, table.highest_priority_);
  for (const uint64_t counter : {table.limiter_.inserts(), table.limiter_.samples(), table.updates_,
                                 table.stale_, table.refused_, table.waited_, table.capped_})
    put(&bytes, counter);
}

void SnapshotSource::next(Block *block) {
  if (!first_.empty()) {
    *block = std::move(first_.front());
    first_.pop_front();
  } else if (table_ < tables_.size()) {
    take_rows(block);
  } else {
    take_mail(block);
  }
  skip_done();
}

// Beyond tables without rows that are left; past the last message all is over.
void SnapshotSource::skip_done() {
  for (; table_ < tables_.size() && slot_ == sizes_[table_]; ++table_, slot_ = 0)
    if (tables_[table_]) tables_[table_]->shadow_.end();
  if (first_.empty() && table_ == tables_.size() && message_ == messages_.end()) end();
}

void SnapshotSource::take_rows(Block *block) {
  block->kind = snapshot::rows;
  std::vector<std::byte> &bytes = block->bytes;
  Table &table = *tables_[table_];
  const Store &store = table.store_;
  const Shadow &shadow = table.shadow_;
  const size_t item = table.config_.item_bytes() + (table.weighted() ? 8 : 4);
  const auto most = static_cast<uint32_t>(std::max<size_t>(snapshot::part_bytes / item, 1));
  const uint32_t first = slot_, count = std::min(most, sizes_[table_] - first);
  bytes.resize(block_head_bytes);
  put(&bytes, table_);
  put(&bytes, first);
  put(&bytes, count);
  const size_t begin = bytes.size();
  bytes.resize(begin + count * item);
  std::byte *to = bytes.data() + begin;
  for (size_t k = 0; k < store.columns(); to += count * store.bytes_of(k), ++k)
    shadow.rows(store, k, first, count, to);
  shadow.generations(store, first, count, to);
  to += count * sizeof(uint32_t);
  if (table.weighted()) shadow.weights(table.tree_, first, count, to);
  slot_ = first + count;
  table.shadow_.passed(slot_);
}

void SnapshotSource::take_mail(Block *block) {
  block->kind = snapshot::mail;
  std::vector<std::byte> &bytes = block->bytes;
  bytes.assign(block_head_bytes, std::byte{0});
  const Message &message = *message_->second;
  const size_t count = std::min(snapshot::part_bytes, message.bytes.size() - message_offset_);
  put_text(&bytes, message_->first);
  put(&bytes, message.version);
  put(&bytes, uint64_t{message.bytes.size()});
  put(&bytes, uint64_t{message_offset_});
  put_bytes(&bytes, message.bytes.data() + message_offset_, count);
  message_offset_ += count;
  if (message_offset_ == message.bytes.size()) ++message_, message_offset_ = 0;
}

void SnapshotSource::end() {
  for (Table *table : tables_)
    if (table) table->shadow_.end();
  tables_.clear(), sizes_.clear(), first_.clear(), messages_.clear();
  active_ = false;
}

}  // namespace accel_rl::replay
