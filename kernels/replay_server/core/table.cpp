#include "table.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "random.hpp"

namespace accel_rl::replay {

namespace {

constexpr float least_weight = 1e-28F, most_weight = 1e28F;  // so that sums stay finite
constexpr uint32_t together = 64;      // draws whose items are fetched at once
constexpr size_t bytes_of_work = 256;  // copied in the time of an item of AMPER's search, or so

}  // namespace

bool are_priorities(const float *priorities, uint32_t count) {
  uint32_t wrong = 0;
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t bits;
    std::memcpy(&bits, priorities + k, sizeof bits);
    // Not negative, not infinite and not NaN: patterns up to the largest number's. -0 is 0.
    wrong |= (bits > UINT32_C(0x7F7FFFFF)) & (bits != UINT32_C(0x80000000));
  }
  return wrong == 0;
}

uint64_t Table::bytes_needed(const TableConfig &config) {
  uint64_t bytes = (config.item_bytes() + sizeof(uint32_t)) * uint64_t{config.capacity};
  if (config.sampler != Sampler::uniform)
    bytes += SumTree::bytes_needed(config.capacity, config.sampler == Sampler::amper_fr);
  return bytes;
}

Table::Table(const TableConfig &config)
    : config_(config),
      item_work_(1 + config.item_bytes() / bytes_of_work),
      limiter_(config.limiter) {}

bool Table::allocate() {
  return store_.allocate(config_, true) &&
         (!weighted() || tree_.allocate(config_.capacity, config_.sampler == Sampler::amper_fr));
}

Status Table::make(const TableConfig &config, std::unique_ptr<Table> *table, std::string *why) {
  const Status status = check(config, why);
  if (status != Status::ok) return status;
  try {
    std::unique_ptr<Table> made(new Table(config));
    if (made->allocate()) {
      *table = std::move(made);
      return Status::ok;
    }
    if (why) *why = "no memory for a table of " + std::to_string(bytes_needed(config)) + " bytes";
  } catch (const std::bad_alloc &) {
  }
  return Status::out_of_memory;
}

float Table::weight_of(float priority) const {
  if (!(priority > 0)) return 0;
  const auto exponent = static_cast<double>(config_.priority_exponent);
  const double power = exponent == 1 ? static_cast<double>(priority)
                                     : std::pow(static_cast<double>(priority), exponent);
  const auto weight = static_cast<float>(power < 1e30 ? power : 1e30);
  return weight < least_weight ? least_weight : weight > most_weight ? most_weight : weight;
}

double Table::total() const { return weighted() ? tree_.total() : size_; }

Stats Table::stats() const {
  return {limiter_.inserts(),
          limiter_.samples(),
          updates_,
          stale_,
          size_,
          refused_,
          waited_,
          capped_,
          ages_};
}

Status Table::can_push(uint32_t count) const {
  if (count < 1 || count > config_.capacity) return Status::bad_count;
  return limiter_.can_insert(size_, count) ? Status::ok : Status::retry;
}

Status Table::push(uint32_t count, const std::byte *const *columns, const float *priorities) {
  Status status = can_push(count);
  if (status != Status::bad_count && priorities && !are_priorities(priorities, count))
    status = Status::bad_priority;
  refused_ += status != Status::ok && status != Status::retry;
  if (status != Status::ok) return status;
  const uint32_t left = config_.capacity - cursor_, some = count < left ? count : left;
  write(cursor_, some, columns, 0, priorities);
  if (some < count) write(0, count - some, columns, some, priorities);
  if (weighted()) tree_.refresh();
  for (uint32_t k = 0; priorities && k < count; ++k) {
    highest_priority_ = std::max(highest_priority_, capped(priorities[k]));
    capped_ += priorities[k] > config_.max_priority;
  }
  cursor_ = (cursor_ + count) % config_.capacity;
  size_ = config_.capacity - size_ < count ? config_.capacity : size_ + count;
  limiter_.inserted(count);
  return Status::ok;
}

void Table::write(uint32_t first, uint32_t count, const std::byte *const *columns, uint32_t offset,
                  const float *priorities) {
  if (shadow_.active())
    for (uint32_t k = 0; k < count; ++k) shadow_.save_item(store_, tree_, first + k);
  store_.write(first, count, columns, offset);
  if (!weighted()) return;
  const float fresh = weight_of(highest_priority_ > 0 ? highest_priority_ : capped(1));
  for (uint32_t k = 0; k < count; ++k)
    tree_.set(first + k, priorities ? weight_of(capped(priorities[offset + k])) : fresh);
}

Status Table::can_sample(uint32_t batch) const {
  if (batch < 1) return Status::bad_count;
  const bool something = total() > 0;
  return something && limiter_.can_sample(size_, batch) ? Status::ok : Status::retry;
}

Status Table::sample(uint64_t seed, uint32_t batch, SampleOut *out) {
  const Status status = begin_sample(seed, batch, &run_);
  if (status != Status::ok) return status;
  while (!continue_sample(UINT64_MAX, &run_, out)) {
  }
  return status;
}

Status Table::begin_sample(uint64_t seed, uint32_t batch, SampleRun *run) {
  const Status status = can_sample(batch);
  refused_ += status == Status::bad_count;
  if (status != Status::ok) return status;
  run->seed = seed, run->batch = batch, run->copied = 0;
  run->searched = config_.sampler != Sampler::amper_fr;
  if (config_.sampler == Sampler::amper_fr)
    run->search.begin(config_.amper, tree_, size_, seed, batch);
  limiter_.sampled(batch);
  return Status::ok;
}

bool Table::continue_sample(uint64_t work, SampleRun *run, SampleOut *out) {
  const bool is_amper = config_.sampler == Sampler::amper_fr;
  uint32_t last = run->batch;
  uint64_t spent = 0;
  if (!run->searched) {
    run->searched = run->search.step(tree_, work, out->slots, out->probabilities);
    last = run->search.drawn();
    run->copied = std::min(run->copied, last);  // it may have begun anew
  }
  while (run->copied < last) {
    if (spent >= work) return false;
    const uint32_t first = run->copied, some = std::min(last - first, together);
    if (config_.sampler == Sampler::prioritised)
      draw_prioritised(run->seed, run->batch, first, some, *out);
    if (config_.sampler == Sampler::uniform) draw_uniform(run->seed, first, some, *out);
    copy(is_amper ? &run->search : nullptr, first, some, out);
    run->copied += some;
    spent += some * item_work_;
  }
  out->size = size_;
  out->total = total();
  return run->searched;
}

// Copy the items of draws `first` on, of a search where that is what draws them.
void Table::copy(const AmperSearch *search, uint32_t first, uint32_t count, SampleOut *out) {
  for (uint32_t k = first; k < first + count; ++k) {
    const uint32_t slot = out->slots[search ? search->place(k) : k];
    store_.prefetch(slot);
    ages_ += cursor_ > slot ? cursor_ - 1 - slot : config_.capacity - 1 - slot + cursor_;
  }
  if (!search || search->in_order()) {
    const uint32_t *slots = out->slots + first;
    store_.gather(slots, count, out->columns, first);
    for (uint32_t k = 0; k < count; ++k)
      out->generations[first + k] = store_.generations()[slots[k]];
    return;
  }
  for (uint32_t k = first; k < first + count; ++k) {
    const uint32_t place = search->place(k);
    store_.gather(out->slots + place, 1, out->columns, place);
    out->generations[place] = store_.generations()[out->slots[place]];
  }
}

void Table::draw_prioritised(uint64_t seed, uint32_t batch, uint32_t first, uint32_t count,
                             const SampleOut &out) const {
  double positions[together] = {};
  const double total = tree_.total();
  for (uint32_t k = 0; k < count; ++k)
    positions[k] = (first + k + uniform_draw(seed, first + k)) / batch * total;
  tree_.find(positions, count, out.slots + first);
  for (uint32_t k = first; k < first + count; ++k)
    // 0 of 0 where others took all weights between two turns of this sample.
    out.probabilities[k] =
        total > 0 ? static_cast<double>(tree_.weights()[out.slots[k]]) / total : 0;
}

void Table::draw_uniform(uint64_t seed, uint32_t first, uint32_t count,
                         const SampleOut &out) const {
  for (uint32_t k = first; k < first + count; ++k) {
    out.slots[k] = uniform_slot(uniform_draw(seed, k), size_);
    out.probabilities[k] = 1.0 / size_;
  }
}

Status Table::update(uint32_t count, const uint32_t *slots, const uint32_t *generations,
                     const float *priorities, UpdateCounts *counts) {
  *counts = {};
  Status status = count < 1 ? Status::bad_count : Status::ok;
  for (uint32_t k = 0; k < count; ++k)
    if (slots[k] >= config_.capacity) status = Status::bad_slot;
  if (!are_priorities(priorities, count)) status = Status::bad_priority;
  refused_ += status != Status::ok;
  if (status != Status::ok) return status;
  for (uint32_t k = 0; k < count; ++k) {
    __builtin_prefetch(store_.generations() + slots[k]);
    if (weighted()) tree_.prefetch(slots[k]);
  }
  for (uint32_t k = 0; k < count; ++k) {
    const uint32_t slot = slots[k];
    // A slot that was never written has generation 0.
    if (slot >= size_ || generations[k] != store_.generations()[slot]) continue;
    ++counts->applied;
    highest_priority_ = std::max(highest_priority_, capped(priorities[k]));
    capped_ += priorities[k] > config_.max_priority;
    if (!weighted()) continue;
    if (shadow_.active()) shadow_.save_weight(tree_, slot);
    tree_.set(slot, weight_of(capped(priorities[k])));
  }
  if (weighted()) tree_.refresh();
  counts->stale = count - counts->applied;
  updates_ += counts->applied;
  stale_ += counts->stale;
  return Status::ok;
}

}  // namespace accel_rl::replay
