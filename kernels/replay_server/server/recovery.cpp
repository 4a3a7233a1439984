// How a server begins with what its files hold: the newest sound snapshot, then what was logged
// after it, up to the first record that is not sound.

#include <filesystem>
#include <system_error>

#include "../core/block_reader.hpp"
#include "../core/clock.hpp"
#include "../core/generations.hpp"
#include "handler.hpp"

namespace accel_rl::replay {

Status Handler::recover(std::vector<std::string> *notes, std::string *why) {
  if (!tables_.empty() || !mailbox_.messages().empty() || log_.active()) {
    *why = "the server holds tables or messages already";
    return Status::out_of_order;
  }
  const std::string &path = settings_.snapshot_path;
  const Status status = recover_snapshot(notes, why);
  if (status != Status::ok) return status;
  bool sound = true;
  for (const uint64_t serial : segments_of(path)) {
    if (serial < serial_) continue;
    const std::string segment = segment_of(path, serial);
    if (!sound || serial != serial_) {  // the snapshot of serial n is followed by segment n
      notes->push_back(segment + ": what comes before it is missing; " + set_aside(segment));
      continue;
    }
    std::string trouble;
    const Status read = recover_segment(segment, &trouble);
    if (read == Status::newer_format || read == Status::io_error) {
      *why = trouble;
      return read;
    }
    sound = read == Status::ok;
    if (!trouble.empty()) notes->push_back(trouble);
    serial_ += std::filesystem::exists(segment);
  }
  changed_ = false;
  for (uint64_t &used_ms : used_ms_) used_ms = clock_ms();
  for (auto &[name, used_ms] : fetched_ms_) used_ms = clock_ms();
  if (!settings_.log) return Status::ok;
  most_logged_ = settings_.log_bytes;
  log_.begin(path, serial_, settings_.log_ms);
  return Status::ok;
}

Status Handler::recover_snapshot(std::vector<std::string> *notes, std::string *why) {
  const std::string &path = settings_.snapshot_path;
  std::vector<std::string> unsound;
  std::string first;
  Status status = Status::ok;
  for (const std::string &each : snapshots_of(path)) {
    status = restore_snapshot(each, settings_.table_bytes, &tables_, &mailbox_, why, &serial_);
    if (status == Status::ok) break;
    if (status != Status::damaged && status != Status::truncated) return status;
    unsound.push_back(each);
    notes->push_back(*why);
    if (first.empty()) first = *why;
  }
  if (status != Status::ok) {
    const std::vector<uint64_t> segments = segments_of(path);
    if (segments.empty() || segments.front() != 0) {  // or the log has all since the beginning
      *why = first;
      return status;
    }
    serial_ = 0;
  }
  for (size_t k = 0; k < unsound.size(); ++k) (*notes)[k] += "; " + set_aside(unsound[k]);
  for (const auto &table : tables_) {
    std::vector<size_t> bytes;
    if (table) {
      table_bytes_ += Table::bytes_needed(table->config());
      for (const Column &column : table->config().columns) bytes.push_back(column.bytes());
    }
    column_bytes_.push_back(std::move(bytes));
    queues_.emplace_back();
    used_ms_.push_back(0);
  }
  for (const auto &[name, message] : mailbox_.messages()) fetched_ms_[name] = 0;
  return Status::ok;
}

// truncated or damaged: what is behind the last sound block is cut off, so that a later segment
// follows it; a file without a whole header is removed. A torn end is what a server leaves that was
// killed; of what is damaged a copy is kept.
Status Handler::recover_segment(const std::string &path, std::string *why) {
  BlockReader reader(path);
  Status status = reader.open(log_format::magic, "log");
  Block block;
  while (status == Status::ok && reader.left() > 0) {
    status = reader.next(&block);
    if (status != Status::ok || (block.kind == log_format::records && recover_records(block)))
      continue;
    status =
        reader.say(Status::io_error,
                   "a record does not fit what came before it, or a limit of this server is lower");
  }
  if (status != Status::damaged && status != Status::truncated) {
    *why = reader.why();
    return status;
  }
  *why = reader.why() + "; " + std::to_string(reader.sound()) + " bytes of it were sound";
  std::error_code error;
  if (status == Status::damaged) {
    const std::string copy = path + ".damaged";
    std::filesystem::copy_file(path, copy, error);
    *why += error ? "; no copy of it was made: " + error.message() : "; " + copy + " is a copy";
  }
  if (reader.sound() == 0)
    std::filesystem::remove(path, error);
  else
    std::filesystem::resize_file(path, reader.sound(), error);
  if (!error) return status;
  *why = "cannot cut off the torn end of " + path + ": " + error.message();
  return Status::io_error;
}

bool Handler::recover_records(const Block &block) {
  ByteReader reader(block.bytes.data(), block.bytes.size());
  while (reader.left() > 0) {
    const auto kind = reader.take<uint32_t>(), bytes = reader.take<uint32_t>();
    const std::byte *payload = reader.take_bytes(bytes);
    if (!payload) return false;
    ByteReader record(payload, bytes);
    bool fits = false;
    if (kind == log_format::request) {
      fits = recover_request(payload, bytes);
    } else if (kind == log_format::sampled) {
      const auto number = record.take<uint16_t>();
      const auto batch = record.take<uint32_t>();
      fits = record.at_end() && number < tables_.size() && tables_[number];
      if (fits) tables_[number]->count_sampled(batch);
    } else if (kind == log_format::session) {
      fits = recover_session(&record);
    } else if (kind == log_format::unused) {
      const bool message = record.take<uint8_t>() == 1;
      const std::string name = record.take_text();
      fits = record.at_end() && (message || find_table(name) < tables_.size());
      if (fits) remove_unused(message, name);
    } else if (kind == log_format::ended) {
      sessions_.remove(record.take<uint64_t>());
      fits = record.at_end();
    }
    if (!fits) return false;
  }
  return true;
}

// It is done as it was when it came.
bool Handler::recover_request(const std::byte *bytes, size_t count) {
  FrameBuffer frame, reply;
  if (count < header_bytes || !frame.append(reinterpret_cast<const uint8_t *>(bytes), count))
    return false;
  Frame request;
  request.bytes = frame.data();
  if (read_header(frame.data(), settings_.limits.frame_bytes, &request.header) != Status::ok ||
      request.header.length != count || check_request(request) != Status::ok)
    return false;
  Peer peer;
  peer.state = Peer::State::ready;
  peer.session = session_of(request.header.session);
  const Outcome outcome = dispatch(peer, request, &reply, 0);
  drop_waiting(peer);
  return outcome == Outcome::reply && get(reply.data(), field::header::status) == 0;
}

bool Handler::recover_session(ByteReader *reader) {
  const auto token = reader->take<uint64_t>();
  Recent recent;
  recent.forget(reader->take<uint64_t>());
  const auto count = reader->take<uint32_t>();
  for (uint32_t k = 0; k < count && reader->ok(); ++k) {
    const auto request = reader->take<uint64_t>();
    const auto status = static_cast<Status>(reader->take<uint32_t>());
    const std::byte *fixed = reader->take_bytes(fixed_bytes);
    if (fixed) recent.add(request, status, reinterpret_cast<const uint8_t *>(fixed));
  }
  if (reader->at_end()) session_of(token)->recent = recent;
  return reader->at_end();
}

// Its client may come back as if the connection alone had broken.
Session *Handler::session_of(uint64_t token) {
  Session *session = sessions_.find(token);
  if (session) return session;
  if (sessions_.size() >= settings_.sessions) (void)sessions_.evict();
  session = sessions_.add(token);
  session->left_ms = clock_ms();
  return session;
}

}  // namespace accel_rl::replay
