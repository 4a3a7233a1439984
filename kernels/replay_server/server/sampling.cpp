// Samples, in steps where they take long.

#include "../core/clock.hpp"
#include "handler.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint64_t step_work = 8192;  // items of AMPER's search between two looks at the clock
constexpr uint64_t turn_us = 500;     // then others have their turn

}  // namespace

Outcome Handler::do_sample(Peer &peer, const Header &header, const SampleRequest &request,
                           FrameBuffer *reply) {
  Table &table = *tables_[header.table];
  layout_.clear();
  const size_t probabilities = layout_.add(request.batch, sizeof(double));
  const size_t slots = layout_.add(request.batch, sizeof(uint32_t));
  const size_t generations = layout_.add(request.batch, sizeof(uint32_t));
  offsets_.clear();
  for (const size_t bytes : column_bytes_[header.table])
    offsets_.push_back(layout_.add(request.batch, bytes));
  if (layout_.length() > settings_.limits.frame_bytes) {
    table.count_refused();
    return fail(header, Status::limit,
                "a batch of " + std::to_string(request.batch) + " takes " +
                    std::to_string(layout_.length()) + " B, a frame at most " +
                    std::to_string(settings_.limits.frame_bytes),
                reply);
  }
  if (!begin_reply(reply, header, Op::sample, Status::ok, layout_)) return Outcome::close;
  uint8_t *frame = reply->data();
  Sampling &now = sampling_;
  now.columns.clear();
  for (const size_t offset : offsets_)
    now.columns.push_back(reinterpret_cast<std::byte *>(frame + offset));
  now.out.slots = reinterpret_cast<uint32_t *>(frame + slots);
  now.out.generations = reinterpret_cast<uint32_t *>(frame + generations);
  now.out.probabilities = reinterpret_cast<double *>(frame + probabilities);
  now.out.columns = now.columns.data();
  const Status status = table.begin_sample(request.seed, request.batch, &now.run);
  if (status != Status::ok) return fail(header, status, "", reply);
  if (log_.active()) log_sample(header.table, request.batch);
  changed_ = changed_ || !queues_[header.table].pushes.empty();
  now.header = header, now.request = request;
  if (continue_sampling(&now)) return finish_sampling(now, reply);
  auto later = std::make_unique<Sampling>(std::move(now));
  now = Sampling();
  later->peer = &peer, later->begun = true, later->began_us = came_us_;
  later->reply.swap(*reply);
  samplings_.push_front(std::move(later));  // before those of this peer that have not begun
  ++peer.sampling;
  return Outcome::waits;
}

// A turn; true when the sample is whole.
bool Handler::continue_sampling(Sampling *sampling) {
  Table &table = *tables_[sampling->header.table];
  uint64_t until = 0;
  while (!table.continue_sample(step_work, &sampling->run, &sampling->out)) {
    const uint64_t now = clock_us();
    if (until == 0) until = now + turn_us;  // most are whole before the clock is looked at
    if (now >= until) return false;
  }
  return true;
}

Outcome Handler::finish_sampling(const Sampling &sampling, FrameBuffer *reply) {
  uint8_t *frame = reply->data();
  set(frame, field::sample_reply::batch, sampling.request.batch);
  set(frame, field::sample_reply::held, sampling.out.size);
  set(frame, field::sample_reply::total, sampling.out.total);
  finish_reply(reply);
  return Outcome::reply;
}

// A turn of the peer that has been served least.
void Handler::serve_samplings(uint64_t now_ms, const Deliver &deliver) {
  if (samplings_.empty()) return;
  auto first = samplings_.begin();
  for (auto each = first; each != samplings_.end(); ++each) {
    service_time_.admit(&(*each)->peer->served_us);
    if ((*each)->peer->served_us < (*first)->peer->served_us) first = each;
  }
  Peer &peer = *(*first)->peer;
  const uint64_t began = clock_us();
  if (!table_of((*first)->header)) {  // it was removed meanwhile
    const bool written = write_error(&late_, (*first)->header, Status::no_such_table, "");
    samplings_.erase(first);
    --peer.sampling;
    if (written) deliver(peer, late_);
    return;
  }
  if ((*first)->begun && !continue_sampling(first->get())) {
    service_time_.charge(&peer.served_us, clock_us() - began);
    return;
  }
  const std::unique_ptr<Sampling> sampling = std::move(*first);
  samplings_.erase(first);
  --peer.sampling;
  FrameBuffer *reply = sampling->begun ? &sampling->reply : &late_;
  came_us_ = sampling->began_us;
  const Outcome outcome =
      sampling->begun ? finish_sampling(*sampling, reply)
                      : answer_sample(peer, sampling->header, sampling->request, reply, now_ms);
  service_time_.charge(&peer.served_us, clock_us() - began);
  if (outcome != Outcome::reply) return;
  count_time(sampling->header, sampling->began_us, sampling->began_us);
  deliver(peer, *reply);
}

}  // namespace accel_rl::replay
