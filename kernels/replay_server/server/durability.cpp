// What is kept on the disk: snapshots, and the log of what changed after the newest.

#include <algorithm>

#include "handler.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint64_t mend_every_ms = 5000;  // a snapshot is tried where the log has failed

bool changes(Op op) {
  return op == Op::open_table || op == Op::push || op == Op::update || op == Op::publish ||
         op == Op::remove;
}

}  // namespace

Status Handler::begin_snapshot(std::string *why) {
  if (settings_.snapshot_path.empty()) {
    *why = "the server has no path for snapshots";
    return Status::unavailable;
  }
  std::vector<Table *> tables;
  tables.reserve(tables_.size());
  for (const auto &table : tables_) tables.push_back(table.get());
  const Status status = snapshots_.begin(settings_.snapshot_path, serial_ + 1,
                                         std::max(settings_.snapshots, 1U), tables, &mailbox_, why);
  if (status != Status::ok) return status;
  ++serial_;
  if (!log_.active()) return status;
  log_.turn(serial_);
  most_logged_ = settings_.log_bytes;
  sessions_.for_each([this](const Session &each) { log_session(each); });
  return status;
}

void Handler::log_session(const Session &session) {
  const Recent &recent = session.recent;
  std::vector<std::byte> record;
  put(&record, session.token);
  put(&record, recent.forgotten());
  put(&record, static_cast<uint32_t>(recent.count()));
  recent.for_each([&](const Recent::End &end) {
    put(&record, end.request);
    put(&record, static_cast<uint32_t>(end.status));
    put_bytes(&record, end.fixed.data(), end.fixed.size());
  });
  log_.add(log_format::session, record.data(), record.size());
}

void Handler::log_sample(uint16_t table, uint32_t batch) {
  std::vector<std::byte> record;
  put(&record, table);
  put(&record, batch);
  log_.add(log_format::sampled, record.data(), record.size());
}

bool Handler::refuse_change(const Header &header, FrameBuffer *reply, uint64_t now_ms,
                            Outcome *outcome) {
  if (!log_.failed() || !changes(static_cast<Op>(header.op))) return false;
  *outcome = fail(header, Status::limit, "changes cannot be logged: " + log_.trouble(), reply);
  if (now_ms < mend_ms_ || snapshots_.active()) return true;
  mend_ms_ = now_ms + mend_every_ms;
  std::string why;  // a snapshot has all that was done, and a log of its own
  (void)begin_snapshot(&why);
  return true;
}

}  // namespace accel_rl::replay
