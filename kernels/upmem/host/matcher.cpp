#include "matcher.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "timer.hpp"

namespace accel_rl::upmem {

namespace {

constexpr const char *heap = DPU_MRAM_HEAP_POINTER_NAME;

bool is_union(arl_match_work work) { return work != ARL_MATCH_TERNARY && work != ARL_MATCH_RANGE; }

}  // namespace

Matcher::Matcher(const Keys &keys, uint32_t dpus, const std::string &profile, Mode mode,
                 bool count_instructions)
    : keys_(keys),
      dpus_count_(dpus),
      pending_(dpus),
      counted_(dpus),
      dpus_(std::make_unique<Dpus>(dpus, profile, mode)) {
  dpus_->load(keys.path, ARL_MATCH_UPDATES * sizeof(arl_match_update), "updates");
  const size_t needed = keys.key_bytes() + 2 * keys.line_bytes();
  if (needed > dpus_->heap_bytes())
    throw Error(Kind::too_large, std::to_string(keys.slots()) + " keys of a DPU need " +
                                     std::to_string(needed) + " B of MRAM, " +
                                     std::to_string(dpus_->heap_bytes()) + " B are left");
  parameters_.groups = keys.groups;
  parameters_.count_instructions = count_instructions;
  report_.dpus = dpus;
  report_.counts_instructions = count_instructions;
  ++report_.program_loads;
}

void Matcher::load(const void *keys, const uint64_t *valid) {
  const std::lock_guard lock(mutex_);
  const Timer timer(report_.load_seconds);
  const size_t key_bytes = keys_.key_bytes(), line_bytes = keys_.line_bytes();
  dpus_->attempt([&] {
    dpus_->scatter(heap, keys, key_bytes, key_bytes);
    dpus_->scatter(heap, valid, line_bytes, line_bytes, static_cast<uint32_t>(key_bytes));
    dpus_->sync();
  });
  report_.scattered_bytes += key_bytes + line_bytes;
  ++report_.loads;
}

void Matcher::launch() {
  dpus_->broadcast("parameters", &parameters_, sizeof parameters_);
  dpus_->launch();
  dpus_->gather("counted", counted_.data(), sizeof(uint64_t), sizeof(uint64_t));
  report_.broadcast_bytes += sizeof parameters_;
  report_.gathered_bytes += sizeof(uint64_t);
}

void Matcher::count() { report_.count_launch(counted_); }

void Matcher::update(const uint32_t *slots, const uint32_t *keys, const uint8_t *valid,
                     size_t count) {
  const std::lock_guard lock(mutex_);
  const Timer timer(report_.launch_seconds);
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return slots[a] < slots[b]; });
  std::vector<std::vector<arl_match_update>> lists(dpus_count_);
  for (size_t k = 0; k < count; ++k) {
    const size_t from = order[k];
    if (k + 1 < count && slots[order[k + 1]] == slots[from]) continue;  // a later one is there
    const uint32_t dpu = slots[from] / keys_.slots(), slot = slots[from] % keys_.slots();
    lists[dpu].push_back({slot | (valid[from] ? ARL_MATCH_VALID : 0), keys[from]});
  }
  size_t longest = 0;
  for (const auto &list : lists) longest = std::max(longest, list.size());
  for (size_t first = 0; first < longest; first += ARL_MATCH_UPDATES) update_some(lists, first);
}

void Matcher::update_some(const std::vector<std::vector<arl_match_update>> &lists, size_t first) {
  size_t longest = 0;
  for (uint32_t d = 0; d < dpus_count_; ++d) {
    const size_t left = lists[d].size() - std::min(first, lists[d].size());
    const size_t some = std::min<size_t>(left, ARL_MATCH_UPDATES);
    pending_[d] = {static_cast<uint32_t>(some), 0};
    longest = std::max(longest, some);
  }
  updates_.assign(dpus_count_ * longest, {});
  for (uint32_t d = 0; d < dpus_count_; ++d)
    std::copy_n(lists[d].begin() + std::min(first, lists[d].size()), pending_[d].updates,
                updates_.begin() + d * longest);
  const size_t bytes = longest * sizeof(arl_match_update);
  dpus_->attempt([&] {
    dpus_->scatter("pending", pending_.data(), sizeof(arl_match_pending),
                   sizeof(arl_match_pending));
    dpus_->scatter("updates", updates_.data(), bytes, bytes);
    parameters_.work = ARL_MATCH_UPDATE;
    launch();
    dpus_->sync();
  });
  report_.scattered_bytes += sizeof(arl_match_pending) + bytes;
  count();
}

void Matcher::search(arl_match_work work, const arl_match_query *queries, uint32_t count,
                     uint32_t *counts, uint64_t *lines) {
  const std::lock_guard lock(mutex_);
  const Timer timer(report_.launch_seconds);
  parameters_.work = work;
  parameters_.lines = lines != nullptr;
  if (is_union(work)) return search_some(queries, count, 1, counts, lines);
  size_t most = ARL_MATCH_COUNTED;
  if (lines) {
    const size_t left = dpus_->heap_bytes() - keys_.key_bytes() - keys_.line_bytes();
    most = std::min(most, left / keys_.line_bytes());
  }
  for (uint32_t some, first = 0; first < count; first += some) {
    some = static_cast<uint32_t>(std::min<size_t>(most, count - first));
    const size_t before = static_cast<size_t>(first) * dpus_count_;
    search_some(queries + first, some, some, counts + before,
                lines ? lines + before * keys_.groups : nullptr);
  }
}

// One launch.
void Matcher::search_some(const arl_match_query *queries, uint32_t count, uint32_t answers,
                          uint32_t *counts, uint64_t *lines) {
  const size_t even = (answers + 1) / 2 * 2, groups = keys_.groups;
  const size_t line_bytes = lines ? answers * keys_.line_bytes() : 0;
  counts_.resize(dpus_count_ * even);
  if (lines && answers > 1) lines_.resize(dpus_count_ * answers * groups);
  uint64_t *gathered = answers > 1 ? lines_.data() : lines;  // one answer comes as it is wanted
  parameters_.queries = count;
  dpus_->attempt([&] {
    dpus_->broadcast("queries", queries, count * sizeof(arl_match_query));
    launch();
    dpus_->gather("counts", counts_.data(), even * sizeof(uint32_t), even * sizeof(uint32_t));
    if (lines)
      dpus_->gather(heap, gathered, line_bytes, line_bytes,
                    static_cast<uint32_t>(keys_.key_bytes() + keys_.line_bytes()));
    dpus_->sync();
  });
  for (size_t d = 0; d < dpus_count_; ++d)
    for (size_t q = 0; q < answers; ++q) {
      const size_t to = q * dpus_count_ + d;
      counts[to] = counts_[d * even + q];
      if (lines && answers > 1)
        std::memcpy(lines + to * groups, gathered + (d * answers + q) * groups, groups * 8);
    }
  report_.broadcast_bytes += count * sizeof(arl_match_query);
  report_.gathered_bytes += even * sizeof(uint32_t) + line_bytes;
  this->count();
}

Report Matcher::report() {
  const std::lock_guard lock(mutex_);
  return report_;
}

}  // namespace accel_rl::upmem
