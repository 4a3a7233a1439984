// What an operator asks for: tables by number, their end, and the server's.

#include "handler.hpp"

namespace accel_rl::replay {

// The table's number, or one more than there are.
size_t Handler::find_table(const std::string &name) const {
  size_t number = 0;
  while (number < tables_.size() && !(tables_[number] && tables_[number]->config().name == name))
    ++number;
  return number;
}

Outcome Handler::describe(size_t number, const Header &header, FrameBuffer *reply) {
  const TableConfig &config = tables_[number]->config();
  Header answer = header;
  answer.table = static_cast<uint16_t>(number);
  layout_.clear();
  layout_.add(description_bytes(config), 1);
  if (!begin_reply(reply, answer, static_cast<Op>(header.op), Status::ok, layout_))
    return Outcome::close;
  write_description(reply->data(), config);
  finish_reply(reply);
  return Outcome::reply;
}

Outcome Handler::next_table(const Frame &frame, FrameBuffer *reply) {
  uint16_t number;
  if (parse_next_table(frame, &number) != Status::ok)
    return refuse(frame.header, Status::malformed, reply);
  for (size_t k = number; k < tables_.size(); ++k)
    if (tables_[k]) return describe(k, frame.header, reply);
  return fail(frame.header, Status::none_newer, "", reply);
}

// Requests that wait for it are answered in serve_waiting().
void Handler::remove_table(size_t number) {
  table_bytes_ -= Table::bytes_needed(tables_[number]->config());
  tables_[number].reset();
  changed_ = true;
}

void Handler::remove_message(const std::string &name) {
  mailbox_.remove(name);
  fetched_ms_.erase(name);
}

void Handler::remove_unused(bool message, const std::string &name) {
  if (log_.active()) {
    std::vector<std::byte> record;
    put(&record, static_cast<uint8_t>(message));
    put_text(&record, name);
    log_.add(log_format::unused, record.data(), record.size());
  }
  message ? remove_message(name) : remove_table(find_table(name));
}

void Handler::expire_unused(uint64_t now_ms) {
  sessions_.expire(now_ms, settings_.session_timeout_ms);
  if (settings_.unused_ms == 0 || snapshots_.active() || log_.failed()) return;
  const auto is_unused = [&](uint64_t used_ms) {
    return now_ms > used_ms && now_ms - used_ms >= settings_.unused_ms;
  };
  for (size_t k = 0; k < tables_.size(); ++k)
    if (tables_[k] && is_unused(used_ms_[k]) && queues_[k].pushes.empty() &&
        queues_[k].samples.empty())
      remove_unused(false, tables_[k]->config().name);
  std::vector<std::string> names;
  for (const auto &[name, used_ms] : fetched_ms_)
    if (is_unused(used_ms)) names.push_back(name);
  for (const std::string &name : names) remove_unused(true, name);
}

Outcome Handler::remove(Peer &peer, const Frame &frame, FrameBuffer *reply) {
  const Header &header = frame.header;
  Outcome outcome;
  if (replay_reply(peer, header, reply, &outcome)) return outcome;
  Remove request;
  const Status parsed = parse_remove(frame, &request);
  if (parsed == Status::malformed) return refuse(header, parsed, reply);
  if (parsed != Status::ok) return fail(header, parsed, "", reply);
  layout_.clear();
  if (!begin_reply(reply, header, Op::remove, Status::ok, layout_)) return Outcome::close;
  if (request.message) {
    if (mailbox_.messages().count(request.name) == 0)
      return fail(header, Status::bad_name, request.name, reply);
    remove_message(request.name);
  } else {
    const size_t number = find_table(request.name);
    if (number == tables_.size()) return fail(header, Status::no_such_table, request.name, reply);
    if (snapshots_.active()) return fail(header, Status::busy, "a snapshot is written", reply);
    remove_table(number);
  }
  finish_reply(reply);
  record(peer, frame, reply);
  return Outcome::reply;
}

Outcome Handler::drain(const Frame &frame, FrameBuffer *reply) {
  if (parse_empty(frame) != Status::ok) return refuse(frame.header, Status::malformed, reply);
  draining_ = true;
  layout_.clear();
  if (!begin_reply(reply, frame.header, Op::drain, Status::ok, layout_)) return Outcome::close;
  finish_reply(reply);
  return Outcome::reply;
}

}  // namespace accel_rl::replay
