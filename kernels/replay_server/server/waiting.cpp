// Requests that wait: for the limiter, or for a snapshot's end.

#include <algorithm>

#include "handler.hpp"

namespace accel_rl::replay {

Status Handler::park(Peer &peer, Waiting waiting, std::deque<Waiting> *queue) {
  const uint64_t bytes = waiting.frame.size();
  if (peer.waiting >= settings_.waiting || bytes > settings_.waiting_bytes - waiting_bytes_)
    return Status::limit;
  // One that was sent again takes the place of the first.
  for (const Waiting &each : *queue)
    if (each.peer == &peer && each.header.request == waiting.header.request) return Status::ok;
  ++peer.waiting;
  waiting_bytes_ += bytes;
  queue->push_back(std::move(waiting));
  return Status::ok;
}

void Handler::unpark(const Waiting &waiting) {
  --waiting.peer->waiting;
  waiting_bytes_ -= waiting.frame.size();
}

void Handler::drop_queued(std::deque<Waiting> *queue, const Peer &peer) {
  for (const Waiting &each : *queue)
    if (each.peer == &peer) unpark(each);
  queue->erase(std::remove_if(queue->begin(), queue->end(),
                              [&](const Waiting &each) { return each.peer == &peer; }),
               queue->end());
}

void Handler::drop_waiting(Peer &peer) {
  if (peer.sampling > 0)
    samplings_.erase(std::remove_if(samplings_.begin(), samplings_.end(),
                                    [&](const auto &each) { return each->peer == &peer; }),
                     samplings_.end());
  peer.sampling = 0;
  if (peer.waiting == 0) return;
  for (Queues &each : queues_) {
    drop_queued(&each.pushes, peer);
    drop_queued(&each.samples, peer);
  }
  for (size_t k = for_snapshot_.size(); k-- > 0;)
    if (for_snapshot_[k].peer == &peer) {
      unpark(for_snapshot_[k]);
      for_snapshot_.erase(for_snapshot_.begin() + static_cast<std::ptrdiff_t>(k));
    }
  changed_ = true;  // those behind may be the first now
}

bool Handler::serve_first(std::deque<Waiting> *queue, bool is_push, const Deliver &deliver) {
  if (queue->empty()) return false;
  Waiting &first = queue->front();
  const uint16_t number = first.header.table;
  const Frame frame{first.frame.data(), first.header};
  if (is_push) {
    parse_push(frame, settings_.limits, column_bytes_[number], &push_);  // as it was when it came
    if (tables_[number]->can_push(push_.items) == Status::retry) return false;
  } else if (tables_[number]->can_sample(first.sample.batch) == Status::retry) {
    return false;
  }
  const Outcome outcome = is_push ? do_push(*first.peer, frame, &late_)
                                  : do_sample(*first.peer, first.header, first.sample, &late_);
  Peer &peer = *first.peer;
  unpark(first);
  queue->pop_front();
  if (outcome == Outcome::reply) deliver(peer, late_);
  return true;
}

void Handler::expire(std::deque<Waiting> *queue, uint64_t now_ms, const Deliver &deliver) {
  for (size_t k = 0; k < queue->size();) {
    Waiting &each = (*queue)[k];
    if (each.deadline_ms > now_ms) {
      ++k;
      continue;
    }
    Peer &peer = *each.peer;
    const bool written = write_error(&late_, each.header, Status::retry, "");
    unpark(each);
    queue->erase(queue->begin() + static_cast<std::ptrdiff_t>(k));
    changed_ = true;  // those behind it may go on
    if (written) deliver(peer, late_);
  }
}

void Handler::serve_waiting(uint64_t now_ms, const Deliver &deliver) {
  if (snapshots_.active() && snapshots_.work()) {
    const std::shared_ptr<const SnapshotEnd> end = snapshots_.last();
    if (end->status == Status::ok) ++statistics_.snapshots;
    std::vector<Waiting> ended;
    ended.swap(for_snapshot_);
    for (Waiting &each : ended) {
      unpark(each);
      if (write_error(&late_, each.header, end->status, end->why)) deliver(*each.peer, late_);
    }
  }
  for (Queues &each : queues_) {
    expire(&each.pushes, now_ms, deliver);
    expire(&each.samples, now_ms, deliver);
  }
  while (changed_) {  // again if a peer left while it was served: others may be first now
    changed_ = false;
    for (Queues &each : queues_)
      while (serve_first(&each.samples, false, deliver) ||
             serve_first(&each.pushes, true, deliver)) {
      }
  }
  serve_samplings(now_ms, deliver);
}

uint64_t Handler::deadline_ms() const {
  uint64_t first = 0;
  for (const Queues &each : queues_)
    for (const auto *queue : {&each.pushes, &each.samples})
      for (const Waiting &waiting : *queue)
        if (first == 0 || waiting.deadline_ms < first) first = waiting.deadline_ms;
  return first;
}

}  // namespace accel_rl::replay
