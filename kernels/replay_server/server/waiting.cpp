// Requests that wait: for the limiter, for a snapshot's end, or for the log.

#include <algorithm>
#include <new>

#include "../core/clock.hpp"
#include "handler.hpp"

namespace accel_rl::replay {

Status Handler::park(Waiting waiting, WaitingQueue *queue) {
  Peer &peer = *waiting.peer;
  const uint64_t bytes = waiting.frame.size(), deadline_ms = waiting.deadline_ms;
  if (peer.waiting >= settings_.waiting || bytes > settings_.waiting_bytes - waiting_bytes_)
    return Status::limit;
  // One that was sent again takes the place of the first.
  for (const auto &each : peer.parked)
    if (each->header.request == waiting.header.request) return Status::ok;
  peer.parked.reserve(peer.parked.size() + 1);  // memory first
  waiting.queue = queue;
  queue->push_back(std::move(waiting));
  const auto parked = std::prev(queue->end());
  try {
    parked->deadline = deadlines_.emplace(deadline_ms, parked);
  } catch (const std::bad_alloc &) {
    queue->pop_back();
    throw;
  }
  peer.parked.push_back(parked);
  ++peer.waiting;
  waiting_bytes_ += bytes;
  return Status::ok;
}

void Handler::unpark(WaitingQueue::iterator waiting) {
  Peer &peer = *waiting->peer;
  --peer.waiting;
  peer.parked.erase(std::find(peer.parked.begin(), peer.parked.end(), waiting));
  waiting_bytes_ -= waiting->frame.size();
  deadlines_.erase(waiting->deadline);
  waiting->queue->erase(waiting);
}

void Handler::drop_waiting(Peer &peer) {
  if (peer.sampling > 0)
    samplings_.erase(std::remove_if(samplings_.begin(), samplings_.end(),
                                    [&](const auto &each) { return each->peer == &peer; }),
                     samplings_.end());
  peer.sampling = 0;
  if (peer.waiting == 0) return;
  while (!peer.parked.empty()) unpark(peer.parked.back());
  for_snapshot_.erase(std::remove_if(for_snapshot_.begin(), for_snapshot_.end(),
                                     [&](const auto &each) { return each.first == &peer; }),
                      for_snapshot_.end());
  for_log_.erase(std::remove_if(for_log_.begin(), for_log_.end(),
                                [&](const Opening &each) { return each.peer == &peer; }),
                 for_log_.end());
  peer.waiting = 0;
  changed_ = true;  // those behind may be the first now
}

bool Handler::serve_first(WaitingQueue *queue, bool is_push, uint64_t now_ms,
                          const Deliver &deliver) {
  if (queue->empty()) return false;
  Waiting &first = queue->front();
  const uint16_t number = first.header.table;
  const Frame frame{first.frame.data(), first.header};
  if (!tables_[number]) {  // it was removed meanwhile
    Peer &peer = *first.peer;
    const bool written = write_error(&late_, first.header, Status::no_such_table, "");
    unpark(queue->begin());
    if (written) deliver(peer, late_);
    return true;
  }
  if (is_push) {
    parse_push(frame, settings_.limits, column_bytes_[number], &push_);  // as it was when it came
    if (tables_[number]->can_push(push_.items) == Status::retry) return false;
  } else if (tables_[number]->can_sample(first.sample.batch) == Status::retry) {
    return false;
  }
  came_us_ = first.began_us;
  const uint64_t began = clock_us();
  Outcome outcome;
  if (!refuse_change(first.header, &late_, now_ms, &outcome))
    outcome = is_push ? do_push(*first.peer, frame, &late_)
                      : do_sample(*first.peer, first.header, first.sample, &late_);
  Peer &peer = *first.peer;
  if (outcome == Outcome::reply) count_time(first.header, first.began_us, began);
  unpark(queue->begin());
  if (outcome == Outcome::reply) deliver(peer, late_);
  return true;
}

void Handler::expire(uint64_t now_ms, const Deliver &deliver) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_ms) {
    const auto waiting = deadlines_.begin()->second;
    Peer &peer = *waiting->peer;
    const bool written = write_error(&late_, waiting->header, Status::retry, "");
    unpark(waiting);
    changed_ = true;  // those behind it may go on
    if (written) deliver(peer, late_);
  }
}

void Handler::serve_openings(const Deliver &deliver) {
  for (;;) {
    const bool failed = log_.failed();
    const auto ready = [&](const Opening &each) { return failed || log_.synced() >= each.records; };
    const auto found = std::find_if(for_log_.begin(), for_log_.end(), ready);
    if (found == for_log_.end()) return;
    const Opening opening = *found;
    for_log_.erase(found);
    --opening.peer->waiting;
    Outcome outcome;
    if (failed)
      outcome = fail(opening.header, Status::limit, "changes cannot be logged: " + log_.trouble(),
                     &late_);
    else if (!tables_[opening.table])  // it was removed meanwhile
      outcome = fail(opening.header, Status::no_such_table, "", &late_);
    else
      outcome = describe(opening.table, opening.header, &late_);
    if (outcome == Outcome::reply) deliver(*opening.peer, late_);
  }
}

void Handler::serve_waiting(uint64_t now_ms, const Deliver &deliver) {
  if (snapshots_.active() && snapshots_.work()) {
    const std::shared_ptr<const SnapshotEnd> end = snapshots_.last();
    if (end->status == Status::ok) ++statistics_.snapshots, log_.turned();
    std::vector<std::pair<Peer *, Header>> ended;
    ended.swap(for_snapshot_);
    for (const auto &[peer, header] : ended) {
      --peer->waiting;
      if (write_error(&late_, header, end->status, end->why)) deliver(*peer, late_);
    }
  }
  serve_openings(deliver);
  std::string why;
  if (log_is_long() && begin_snapshot(&why) != Status::ok) most_logged_ += settings_.log_bytes;
  expire(now_ms, deliver);
  while (changed_) {  // again if a peer left while it was served: others may be first now
    changed_ = false;
    for (Queues &each : queues_)
      while (serve_first(&each.samples, false, now_ms, deliver) ||
             serve_first(&each.pushes, true, now_ms, deliver)) {
      }
  }
  serve_samplings(now_ms, deliver);
}

uint64_t Handler::deadline_ms() const { return deadlines_.empty() ? 0 : deadlines_.begin()->first; }

}  // namespace accel_rl::replay
