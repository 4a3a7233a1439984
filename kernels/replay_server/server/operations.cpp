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

// Requests that wait for a table which is removed are answered in serve_waiting().
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
    if (!mailbox_.remove(request.name)) return fail(header, Status::bad_name, request.name, reply);
  } else {
    const size_t number = find_table(request.name);
    if (number == tables_.size()) return fail(header, Status::no_such_table, request.name, reply);
    if (snapshots_.active()) return fail(header, Status::busy, "a snapshot is written", reply);
    table_bytes_ -= Table::bytes_needed(tables_[number]->config());
    tables_[number].reset();
    changed_ = true;
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
