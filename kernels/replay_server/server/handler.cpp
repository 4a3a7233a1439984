#include "handler.hpp"

#include <algorithm>

#include "../core/clock.hpp"

namespace accel_rl::replay {

constexpr const char *name_rule = "a name must be 1 to 255 printable bytes of UTF-8";

Handler::Handler(Settings settings)
    : settings_(std::move(settings)), mailbox_(settings_.mailbox_bytes, settings_.mailbox_names) {}

uint32_t Handler::most_bytes(const Peer &peer) const {
  return peer.state == Peer::State::ready ? settings_.limits.frame_bytes
                                          : settings_.limits.early_frame_bytes;
}

const Statistics &Handler::statistics() {
  statistics_.sessions = sessions_.size();
  statistics_.waiting = for_snapshot_.size() + for_log_.size();
  for (const Queues &each : queues_)
    statistics_.waiting += each.pushes.size() + each.samples.size();
  return statistics_;
}

Outcome Handler::fail(const Header &header, Status status, const std::string &why,
                      FrameBuffer *reply) {
  return write_error(reply, header, status, why) ? Outcome::reply : Outcome::close;
}

Outcome Handler::fail_and_close(const Header &header, Status status, const std::string &why,
                                FrameBuffer *reply) {
  return write_error(reply, header, status, why) ? Outcome::reply_and_close : Outcome::close;
}

Outcome Handler::refuse(const Header &header, Status status, FrameBuffer *reply) {
  ++statistics_.malformed;
  // To what is not even of this protocol, nothing is said.
  return status == Status::bad_magic ? Outcome::close : fail_and_close(header, status, "", reply);
}

Outcome Handler::handle(Peer &peer, const Frame &frame, FrameBuffer *reply, uint64_t now_ms) {
  const Header &header = frame.header;
  const Status status = check_request(frame);
  const bool ready = peer.state == Peer::State::ready;
  if (status == Status::unknown_op && ready) return fail(header, status, "", reply);
  if (status == Status::unknown_op) return fail_and_close(header, Status::out_of_order, "", reply);
  if (status != Status::ok) return refuse(header, status, reply);
  ++statistics_.requests;
  const Op op = static_cast<Op>(header.op);
  const bool greeting = op == Op::hello || op == Op::auth;
  if (greeting == ready) return fail_and_close(header, Status::out_of_order, "", reply);
  if (!greeting && header.session != peer.session->token)
    return fail_and_close(header, Status::wrong_session, "", reply);
  came_us_ = clock_us();
  const Outcome outcome = dispatch(peer, frame, reply, now_ms);
  if (outcome != Outcome::waits) count_time(header, came_us_, came_us_);
  return outcome;
}

void Handler::count_time(const Header &header, uint64_t came_us, uint64_t began_us) {
  const uint64_t now = clock_us();
  latencies_.add(header.op, now - came_us);
  if (settings_.slow_us > 0 && now - began_us >= settings_.slow_us)
    slow_.add(header, now - began_us);
}

Outcome Handler::dispatch(Peer &peer, const Frame &frame, FrameBuffer *reply, uint64_t now_ms) {
  if (frame.header.table < used_ms_.size()) used_ms_[frame.header.table] = now_ms;
  Outcome refused;
  if (refuse_change(frame.header, reply, now_ms, &refused)) return refused;
  switch (static_cast<Op>(frame.header.op)) {
    case Op::hello:
      return hello(peer, frame, reply);
    case Op::auth:
      return auth(peer, frame, reply);
    case Op::open_table:
      return open_table(peer, frame, reply, now_ms);
    case Op::push:
      return push(peer, frame, reply, now_ms);
    case Op::sample:
      return sample(peer, frame, reply, now_ms);
    case Op::update:
      return update(peer, frame, reply);
    case Op::stats:
      return stats(frame, reply);
    case Op::publish:
      return publish(peer, frame, reply, now_ms);
    case Op::fetch:
      return fetch(frame, reply, now_ms);
    case Op::snapshot:
      return snapshot(peer, frame, reply);
    case Op::ping:
      return ping(frame, reply);
    case Op::bye:
      return bye(peer, frame, reply);
    case Op::remove:
      return remove(peer, frame, reply);
    case Op::next_table:
      return next_table(frame, reply);
    case Op::drain:
      return drain(frame, reply);
    case Op::challenge:
    case Op::welcome:
    case Op::ack:
    case Op::reset:
    case Op::cookie:
      break;
  }
  return fail(frame.header, Status::unknown_op, "", reply);
}

Outcome Handler::open_table(Peer &peer, const Frame &frame, FrameBuffer *reply, uint64_t now_ms) {
  OpenTable request;
  std::string why;
  const Status parsed = parse_open_table(frame, &request, &why);
  if (parsed == Status::malformed) return refuse(frame.header, parsed, reply);
  if (parsed != Status::ok) return fail(frame.header, parsed, why, reply);
  const size_t number = find_table(request.config.name);
  if (number == tables_.size()) {
    if (!request.create || !request.described)
      return fail(frame.header, Status::no_such_table, request.config.name, reply);
    const uint64_t bytes = Table::bytes_needed(request.config);
    const auto removed = std::count(tables_.begin(), tables_.end(), nullptr);
    const size_t open = tables_.size() - static_cast<size_t>(removed);
    if (open >= settings_.tables || number >= no_table ||
        bytes > settings_.table_bytes - table_bytes_)
      return fail(frame.header, Status::limit,
                  "the table needs " + std::to_string(bytes) + " B; of " +
                      std::to_string(settings_.table_bytes) + " B in " +
                      std::to_string(settings_.tables) + " tables, " +
                      std::to_string(table_bytes_) + " B in " + std::to_string(open) +
                      " are in use",
                  reply);
    std::vector<size_t> column_bytes;
    column_bytes.reserve(request.config.columns.size());
    for (const Column &column : request.config.columns) column_bytes.push_back(column.bytes());
    std::unique_ptr<Table> table;
    const Status made = Table::make(request.config, &table, &why);
    if (made != Status::ok) return fail(frame.header, made, why, reply);
    tables_.reserve(number + 1);  // memory first: all that follows is done, or nothing
    column_bytes_.reserve(number + 1);
    used_ms_.reserve(number + 1);
    if (queues_.size() == number) queues_.emplace_back();
    tables_.push_back(std::move(table));
    column_bytes_.push_back(std::move(column_bytes));
    used_ms_.push_back(now_ms);
    table_bytes_ += bytes;
    if (log_.active()) {
      log_.add(log_format::request, frame.bytes, frame.header.length);
      log_.hurry();
      opened_ = log_.added();
    }
  }
  used_ms_[number] = now_ms;
  const TableConfig &config = tables_[number]->config();
  if (request.described && request.config != config)
    return fail(frame.header, Status::table_differs, config.name, reply);
  // A client that reconnects after a crash must find its table.
  if (!log_.active() || log_.synced() >= opened_) return describe(number, frame.header, reply);
  if (peer.waiting >= settings_.waiting) return fail(frame.header, Status::limit, "", reply);
  for_log_.push_back({&peer, frame.header, number, opened_});
  ++peer.waiting;
  return Outcome::waits;
}

Outcome Handler::stats(const Frame &frame, FrameBuffer *reply) {
  if (parse_empty(frame) != Status::ok) return refuse(frame.header, Status::malformed, reply);
  layout_.clear();
  if (frame.header.table == no_table) {
    const Statistics &now = statistics();
    const size_t at = layout_.add(1, sizeof now);
    if (!begin_reply(reply, frame.header, Op::stats, Status::ok, layout_)) return Outcome::close;
    set(reply->data(), field::stats_reply::counts, static_cast<uint32_t>(statistics_count));
    write_at(reply->data() + at, now);
  } else {
    const Table *table = table_of(frame.header);
    if (!table) return fail(frame.header, Status::no_such_table, "", reply);
    const Stats now = table->stats();
    const uint64_t counts[] = {now.inserts, now.samples, now.updates, now.stale,
                               now.size,    now.refused, now.waited,  now.capped};
    const size_t at = layout_.add(1, sizeof counts);
    if (!begin_reply(reply, frame.header, Op::stats, Status::ok, layout_)) return Outcome::close;
    set(reply->data(), field::stats_reply::counts,
        static_cast<uint32_t>(sizeof counts / sizeof *counts));
    set(reply->data(), field::stats_reply::total, table->total());
    std::memcpy(reply->data() + at, counts, sizeof counts);
  }
  finish_reply(reply);
  return Outcome::reply;
}

Outcome Handler::publish(Peer &peer, const Frame &frame, FrameBuffer *reply, uint64_t now_ms) {
  Outcome outcome;
  if (replay_reply(peer, frame.header, reply, &outcome)) return outcome;
  Publish request;
  const Status parsed = parse_publish(frame, &request);
  if (parsed == Status::malformed) return refuse(frame.header, parsed, reply);
  if (parsed != Status::ok) return fail(frame.header, parsed, name_rule, reply);
  layout_.clear();
  if (!begin_reply(reply, frame.header, Op::publish, Status::ok, layout_)) return Outcome::close;
  fetched_ms_[request.name] = now_ms;  // memory first
  const Status status =
      mailbox_.publish(request.name, request.version,
                       reinterpret_cast<const std::byte *>(request.value), request.bytes);
  if (mailbox_.messages().count(request.name) == 0) fetched_ms_.erase(request.name);
  if (status != Status::ok) return fail(frame.header, status, request.name, reply);
  set(reply->data(), field::publish_reply::version, request.version);
  finish_reply(reply);
  record(peer, frame, reply);
  return Outcome::reply;
}

Outcome Handler::fetch(const Frame &frame, FrameBuffer *reply, uint64_t now_ms) {
  Fetch request;
  const Status parsed = parse_fetch(frame, &request);
  if (parsed == Status::malformed) return refuse(frame.header, parsed, reply);
  if (parsed != Status::ok) return fail(frame.header, parsed, name_rule, reply);
  std::shared_ptr<const Message> message;
  const Status status = mailbox_.fetch(request.name, request.newer_than, request.any, &message);
  if (const auto kept = fetched_ms_.find(request.name); kept != fetched_ms_.end())
    kept->second = now_ms;
  if (status != Status::ok) return fail(frame.header, status, "", reply);
  layout_.clear();
  const size_t at = layout_.add(message->bytes.size(), 1);
  if (!begin_reply(reply, frame.header, Op::fetch, Status::ok, layout_)) return Outcome::close;
  set(reply->data(), field::fetch_reply::version, message->version);
  if (!message->bytes.empty())
    std::memcpy(reply->data() + at, message->bytes.data(), message->bytes.size());
  finish_reply(reply);
  return Outcome::reply;
}

Outcome Handler::snapshot(Peer &peer, const Frame &frame, FrameBuffer *reply) {
  if (parse_empty(frame) != Status::ok) return refuse(frame.header, Status::malformed, reply);
  if (peer.waiting >= settings_.waiting) return fail(frame.header, Status::limit, "", reply);
  std::string why;
  const Status status = begin_snapshot(&why);
  if (status != Status::ok) return fail(frame.header, status, why, reply);
  for_snapshot_.emplace_back(&peer, frame.header);
  ++peer.waiting;
  return Outcome::waits;
}

Outcome Handler::ping(const Frame &frame, FrameBuffer *reply) {
  layout_.clear();
  const size_t bytes = frame.header.length - body_offset, at = layout_.add(bytes, 1);
  if (!begin_reply(reply, frame.header, Op::ping, Status::ok, layout_)) return Outcome::close;
  std::memcpy(reply->data() + header_bytes, frame.bytes + header_bytes, fixed_bytes);
  if (bytes > 0) std::memcpy(reply->data() + at, frame.bytes + at, bytes);
  finish_reply(reply);
  return Outcome::reply;
}

}  // namespace accel_rl::replay
