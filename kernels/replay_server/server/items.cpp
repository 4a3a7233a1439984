// Pushes, samples and updates, and how they wait for the limiter.

#include "handler.hpp"

namespace accel_rl::replay {

namespace {

std::string never(uint32_t count, const char *what) {
  return std::string(what) + " of " + std::to_string(count) +
         " will never be between the least and most difference of the table";
}

// Why a number of items was refused; empty if it is within its limit, and the status says enough.
std::string number_of(uint32_t items, uint32_t most, const char *whose) {
  if (items > 0 && items <= most) return "";
  return std::string(whose) + " takes 1 to " + std::to_string(most) + ", got " +
         std::to_string(items);
}

}  // namespace

Table *Handler::table_of(const Header &header) {
  return header.table < tables_.size() ? tables_[header.table].get() : nullptr;
}

bool Handler::replay_reply(const Peer &peer, const Header &header, FrameBuffer *reply,
                           Outcome *outcome) {
  const Recent &recent = peer.session->recent;
  if (const Recent::End *end = recent.find(header.request)) {
    ++statistics_.repeated;
    layout_.clear();
    *outcome = Outcome::close;
    if (!begin_reply(reply, header, static_cast<Op>(header.op), end->status, layout_)) return true;
    std::memcpy(reply->data() + header_bytes, end->fixed.data(), fixed_bytes);
    finish_reply(reply);
    *outcome = Outcome::reply;
    return true;
  }
  if (!recent.is_too_old(header.request)) return false;
  *outcome = fail(header, Status::repeated,
                  header.request == 0 ? "changes are numbered from 1 on"
                                      : "request " + std::to_string(header.request) +
                                            " is too old to be told from one that was answered",
                  reply);
  return true;
}

void Handler::record(Peer &peer, const Frame &frame, FrameBuffer *reply) {
  peer.session->recent.add(frame.header.request,
                           static_cast<Status>(get(reply->data(), field::header::status)),
                           reply->data() + header_bytes);
  if (log_.active()) log_.add(log_format::request, frame.bytes, frame.header.length);
}

Outcome Handler::push(Peer &peer, const Frame &frame, FrameBuffer *reply, uint64_t now_ms) {
  const Header &header = frame.header;
  Table *table = table_of(header);
  if (!table) return fail(header, Status::no_such_table, "", reply);
  Outcome outcome;
  if (replay_reply(peer, header, reply, &outcome)) return outcome;
  if (draining_) return fail(header, Status::unavailable, drained, reply);
  const Status parsed = parse_push(frame, settings_.limits, column_bytes_[header.table], &push_);
  if (parsed == Status::malformed) return refuse(header, parsed, reply);
  if (parsed != Status::ok) {
    table->count_refused();
    return fail(header, parsed, number_of(push_.items, settings_.limits.batch, "a call"), reply);
  }
  Queues &queues = queues_[header.table];
  Status status = queues.pushes.empty() ? table->can_push(push_.items) : Status::retry;
  // What is bad is refused at once, and what may not wait has its answer.
  const bool bad = push_.priorities && !are_priorities(push_.priorities, push_.items);
  if (status != Status::retry || bad || (push_.timeout_ms == 0 && queues.pushes.empty()))
    return do_push(peer, frame, reply);
  if (push_.timeout_ms > 0) {
    if (table->never_pushes(push_.items)) {
      table->count_refused();
      return fail(header, Status::bad_count, never(push_.items, "an insert"), reply);
    }
    table->count_waited();
    Waiting waiting{&peer, now_ms + push_.timeout_ms, header, {}, {}, came_us_, nullptr, {}};
    if (!waiting.frame.append(frame.bytes, header.length)) return Outcome::close;
    status = park(std::move(waiting), &queues.pushes);
    if (status == Status::ok) return Outcome::waits;
  }
  return fail(header, status, "", reply);
}

Outcome Handler::do_push(Peer &peer, const Frame &frame, FrameBuffer *reply) {
  const Header &header = frame.header;
  Table &table = *tables_[header.table];
  layout_.clear();
  // First, as what was done without a reply would not be remembered, and done again.
  if (!begin_reply(reply, header, Op::push, Status::ok, layout_)) return Outcome::close;
  const Status status = table.push(push_.items, push_.columns.data(), push_.priorities);
  if (status == Status::bad_count)
    return fail(header, status,
                number_of(push_.items, table.config().capacity, "a table of that capacity"), reply);
  if (status != Status::ok) return fail(header, status, "", reply);
  changed_ = changed_ || !queues_[header.table].samples.empty();
  set(reply->data(), field::push_reply::items, push_.items);
  set(reply->data(), field::push_reply::held, table.size());
  finish_reply(reply);
  record(peer, frame, reply);
  return Outcome::reply;
}

Outcome Handler::sample(Peer &peer, const Frame &frame, FrameBuffer *reply, uint64_t now_ms) {
  const Header &header = frame.header;
  Table *table = table_of(header);
  if (!table) return fail(header, Status::no_such_table, "", reply);
  SampleRequest request;
  const Status parsed = parse_sample(frame, settings_.limits, &request);
  if (parsed == Status::malformed) return refuse(header, parsed, reply);
  if (parsed != Status::ok) {
    table->count_refused();
    return fail(header, parsed, number_of(request.batch, settings_.limits.batch, "a call"), reply);
  }
  if (table->config().sampler == Sampler::amper_fr &&
      request.batch > settings_.limits.amper_batch) {
    table->count_refused();
    return fail(
        header, Status::bad_count,
        "amper_fr draws at most " + std::to_string(settings_.limits.amper_batch) + " at once",
        reply);
  }
  if (peer.sampling == 0) return answer_sample(peer, header, request, reply, now_ms);
  // One at a time: what this one takes is its own.
  if (peer.sampling >= settings_.waiting) return fail(header, Status::limit, "", reply);
  auto sampling = std::make_unique<Sampling>();
  sampling->peer = &peer, sampling->header = header, sampling->request = request;
  sampling->began_us = came_us_;
  samplings_.push_back(std::move(sampling));
  ++peer.sampling;
  return Outcome::waits;
}

Outcome Handler::answer_sample(Peer &peer, const Header &header, const SampleRequest &request,
                               FrameBuffer *reply, uint64_t now_ms) {
  Table *table = tables_[header.table].get();
  Queues &queues = queues_[header.table];
  Status status = queues.samples.empty() ? table->can_sample(request.batch) : Status::retry;
  if (status != Status::retry || (request.timeout_ms == 0 && queues.samples.empty()))
    return do_sample(peer, header, request, reply);
  if (request.timeout_ms > 0) {
    if (table->never_samples(request.batch)) {  // it would hold up all behind it
      table->count_refused();
      return fail(header, Status::bad_count, never(request.batch, "a sample"), reply);
    }
    table->count_waited();
    status = park({&peer, now_ms + request.timeout_ms, header, request, {}, came_us_, nullptr, {}},
                  &queues.samples);
    if (status == Status::ok) return Outcome::waits;
  }
  return fail(header, status, "", reply);
}

Outcome Handler::update(Peer &peer, const Frame &frame, FrameBuffer *reply) {
  const Header &header = frame.header;
  Table *table = table_of(header);
  if (!table) return fail(header, Status::no_such_table, "", reply);
  Outcome outcome;
  if (replay_reply(peer, header, reply, &outcome)) return outcome;
  Update request;
  const Status parsed = parse_update(frame, settings_.limits, &request);
  if (parsed == Status::malformed) return refuse(header, parsed, reply);
  if (parsed != Status::ok) {
    table->count_refused();
    return fail(header, parsed, number_of(request.items, settings_.limits.batch, "a call"), reply);
  }
  layout_.clear();
  if (!begin_reply(reply, header, Op::update, Status::ok, layout_)) return Outcome::close;
  UpdateCounts counts;
  const Status status =
      table->update(request.items, request.slots, request.generations, request.priorities, &counts);
  if (status != Status::ok) return fail(header, status, "", reply);
  changed_ = changed_ || !queues_[header.table].samples.empty();  // weights may all have been 0
  set(reply->data(), field::update_reply::applied, counts.applied);
  set(reply->data(), field::update_reply::stale, counts.stale);
  finish_reply(reply);
  record(peer, frame, reply);
  return Outcome::reply;
}

}  // namespace accel_rl::replay
