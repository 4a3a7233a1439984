#include "device.hpp"

#include <unistd.h>

#include <algorithm>
#include <random>

#include "owned_trainer.hpp"
#include "trainer.hpp"

namespace accel_rl::upmem {

namespace {

constexpr size_t most_errors = 64;

// a + b - c, field by field, but of b what is no sum.
Report combine(const Report &a, const Report &b, const Report &c) {
  return {
      .dpus = b.dpus,
      .counts_instructions = b.counts_instructions,
      .loads = a.loads + b.loads - c.loads,
      .launches = a.launches + b.launches - c.launches,
      .program_loads = a.program_loads + b.program_loads - c.program_loads,
      .scattered_bytes = a.scattered_bytes + b.scattered_bytes - c.scattered_bytes,
      .load_broadcast_bytes =
          a.load_broadcast_bytes + b.load_broadcast_bytes - c.load_broadcast_bytes,
      .broadcast_bytes = a.broadcast_bytes + b.broadcast_bytes - c.broadcast_bytes,
      .pushed_bytes = a.pushed_bytes + b.pushed_bytes - c.pushed_bytes,
      .gathered_bytes = a.gathered_bytes + b.gathered_bytes - c.gathered_bytes,
      .slowest = a.slowest + b.slowest - c.slowest,
      .counted = a.counted + b.counted - c.counted,
      .load_seconds = a.load_seconds + b.load_seconds - c.load_seconds,
      .launch_seconds = a.launch_seconds + b.launch_seconds - c.launch_seconds,
  };
}

std::unique_ptr<Training> make_training(const Registered &wanted, uint32_t dpus) {
  const Program &program = wanted.program;
  if (program.lanes > 0)
    return std::make_unique<OwnedTrainer>(program, dpus, wanted.profile, wanted.mode,
                                          wanted.count_instructions);
  return std::make_unique<Trainer>(program, dpus, wanted.profile, wanted.mode,
                                   wanted.count_instructions);
}

}  // namespace

Device &Device::instance() {
  // Never destroyed: the host library may be gone before it at the process's end.
  static Device *const device = new Device();
  return *device;
}

// Tokens of other processes differ, in case one finds its way here.
Device::Device()
    : owner_(getpid()), token_(static_cast<uint64_t>(std::random_device{}()) << 32 | 1) {}

void Device::detach_after_fork() {
  if (owner_ == getpid()) return;
  owner_ = getpid();
  (void)trainer_.release();
  free_dpus();
}

void Device::free_dpus() {
  collect();
  trainer_.reset();
  resident_ = 0;
  seen_ = {};
}

void Device::add(int64_t id, Registered registered) {
  const std::lock_guard lock(mutex_);
  programs_[id] = std::move(registered);
}

Registered Device::find(int64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = programs_.find(id);
  if (found == programs_.end())
    throw Error(Kind::invalid, "the DPU program of this computation was not built in this process");
  return found->second;
}

uint64_t Device::next_token() {
  const std::lock_guard lock(mutex_);
  return token_++;
}

void Device::run(int64_t id, const Rows &rows, uint64_t token, const Launch &launch,
                 const Operands &operands, void *results) {
  const Registered wanted = find(id);
  const std::lock_guard lock(mutex_);
  detach_after_fork();
  try {
    if (!trainer_ || loaded_ != id || asked_ != rows.chunks ||
        (!launch.own_tables && trainer_->dpus() < rows.chunks)) {
      free_dpus();  // before others are asked for
      allocate(wanted, rows.chunks, launch.own_tables);
      loaded_ = id;
      asked_ = rows.chunks;
    }
    if (trainer_->dpus() < rows.chunks)
      return run_in_rounds(wanted.program, rows, launch, operands.table, results);
    if (resident_ != token) {
      resident_ = 0;
      trainer_->load_rows(rows);
      resident_ = token;
    }
    trainer_->run(launch, operands, results);
  } catch (...) {
    free_dpus();
    throw;
  }
}

void Device::allocate(const Registered &wanted, uint32_t chunks, bool in_rounds) {
  for (uint32_t count = chunks;;) {
    try {
      trainer_ = make_training(wanted, count);
      return;
    } catch (const Error &error) {
      if (error.kind != Kind::too_few_dpus || !in_rounds || count < 2) throw;
    }
    // The fewest rounds of less than `count` chunks, and as many chunks in each.
    const uint32_t rounds = (chunks + count - 2) / (count - 1);
    count = (chunks + rounds - 1) / rounds;
  }
}

void Device::run_in_rounds(const Program &program, const Rows &rows, const Launch &launch,
                           const void *table, void *tables) {
  const uint32_t count = trainer_->dpus();
  const size_t row_words = size_t{4} * rows.capacity, entries = program.entries();
  resident_ = 0;
  for (uint32_t start = 0; start < rows.chunks; start += count) {
    // The last round is as large as the others: it repeats chunks, which gives the same tables.
    const size_t first = std::min(start, rows.chunks - count);
    trainer_->load_rows({rows.words + first * row_words, rows.lengths + first, count, rows.capacity,
                         static_cast<uint32_t>(first)});
    trainer_->run(launch, {static_cast<const uint32_t *>(table) + first * entries},
                  static_cast<uint32_t *>(tables) + first * entries);
  }
}

void Device::release() {
  const std::lock_guard lock(mutex_);
  detach_after_fork();
  free_dpus();
}

uint32_t Device::held() {
  const std::lock_guard lock(mutex_);
  detach_after_fork();
  return trainer_ ? trainer_->dpus() : 0;
}

void Device::collect() {
  if (!trainer_) return;
  report_ = combine(report_, trainer_->report(), seen_);
  seen_ = trainer_->report();
}

Report Device::report() {
  const std::lock_guard lock(mutex_);
  collect();
  return report_;
}

uint64_t Device::keep(const Error &error) {
  const std::lock_guard lock(mutex_);
  errors_.emplace_back(++error_, error);
  if (errors_.size() > most_errors) errors_.pop_front();
  return error_;
}

std::optional<Error> Device::kept(uint64_t number) {
  const std::lock_guard lock(mutex_);
  for (const auto &[own, error] : errors_)
    if (own == number) return error;
  return std::nullopt;
}

}  // namespace accel_rl::upmem
