// A table of items: pushed in ring order, drawn by priority, refused whole or taken whole.
// Not for several threads at once: who shares one takes turns. No call allocates memory or throws,
// but those of AMPER's samples, which may throw std::bad_alloc.

#ifndef ACCEL_RL_REPLAY_TABLE_HPP
#define ACCEL_RL_REPLAY_TABLE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "amper.hpp"
#include "limiter.hpp"
#include "schema.hpp"
#include "shadow.hpp"
#include "status.hpp"
#include "store.hpp"
#include "sum_tree.hpp"

namespace accel_rl::replay {

// Where a sample goes: the caller's memory, each with room for the batch.
struct SampleOut {
  uint32_t *slots = nullptr;
  uint32_t *generations = nullptr;
  double *probabilities = nullptr;      // of each draw to be this item
  std::byte *const *columns = nullptr;  // one destination per column, any alignment
  uint32_t size = 0;                    // result: items held
  double total = 0;                     // result: sum of weights; that of uniform is the size
};

// A sample that was begun.
struct SampleRun {
  uint64_t seed = 0;
  uint32_t batch = 0, copied = 0;
  bool searched = true;  // what AMPER looks for is found: items are left to be copied
  AmperSearch search;
};

struct UpdateCounts {
  uint32_t applied = 0, stale = 0;
};

struct Stats {
  uint64_t inserts = 0, samples = 0;  // items; what the limiter counts
  uint64_t updates = 0, stale = 0;    // priorities set, and dropped as their item is gone
  uint64_t size = 0;                  // items held
  uint64_t refused = 0;               // calls refused for what they asked
  uint64_t waited = 0;                // requests that a server parked
  uint64_t capped = 0;                // priorities above max_priority, which count as that one
  uint64_t ages = 0;                  // of items drawn, in items pushed since, summed up
};

class Table {
 public:
  static uint64_t bytes_needed(const TableConfig &config);  // of a config that is ok
  // ok, what check() of a config says, or out_of_memory.
  static Status make(const TableConfig &config, std::unique_ptr<Table> *table, std::string *why);

  // Status of calls: ok, bad_count, bad_priority or retry; of can_...: ok, bad_count or retry.
  // columns[i]: count * bytes of column i, contiguous. priorities [count], or null: each new item
  // gets the highest priority that was ever given, 1 if none was.
  Status can_push(uint32_t count) const;
  Status push(uint32_t count, const std::byte *const *columns, const float *priorities);

  // A batch may be larger than the table: draws are with replacement.
  Status can_sample(uint32_t batch) const;
  Status sample(uint64_t seed, uint32_t batch, SampleOut *out);
  // The same in steps, between which the table may change: each item is copied in one of them.
  Status begin_sample(uint64_t seed, uint32_t batch, SampleRun *run);
  // Look at about `work` items of AMPER's search, and copy for about as long; true when it is
  // whole. What changes between two calls counts for the draws that are left.
  bool continue_sample(uint64_t work, SampleRun *run, SampleOut *out);

  // Also bad_slot. A slot that is there twice gets the last of its priorities.
  Status update(uint32_t count, const uint32_t *slots, const uint32_t *generations,
                const float *priorities, UpdateCounts *counts);

  // Whether the limiter will never let it in, whatever others do.
  bool never_pushes(uint32_t count) const { return limiter_.never_inserts(size_, count); }
  bool never_samples(uint32_t batch) const { return limiter_.never_samples(size_, batch); }

  const TableConfig &config() const { return config_; }
  Stats stats() const;
  uint32_t size() const { return size_; }
  double total() const;
  void count_sampled(uint32_t batch) { limiter_.sampled(batch); }  // before this table was read
  void count_waited() { ++waited_; }
  void count_refused() { ++refused_; }  // where a server refuses what never came here

 private:
  friend class SnapshotSource;
  friend class SnapshotReader;

  explicit Table(const TableConfig &config);
  bool allocate();
  bool weighted() const { return config_.sampler != Sampler::uniform; }
  float weight_of(float priority) const;
  float capped(float priority) const { return std::min(priority, config_.max_priority); }
  void write(uint32_t first, uint32_t count, const std::byte *const *columns, uint32_t offset,
             const float *priorities);
  void draw_prioritised(uint64_t seed, uint32_t batch, uint32_t first, uint32_t count,
                        const SampleOut &out) const;
  void draw_uniform(uint64_t seed, uint32_t first, uint32_t count, const SampleOut &out) const;
  void copy(const AmperSearch *search, uint32_t first, uint32_t count, SampleOut *out);

  TableConfig config_;
  Store store_;
  SumTree tree_;            // not for uniform
  uint64_t item_work_ = 1;  // of copying an item
  SampleRun run_;           // of sample()
  Limiter limiter_;
  Shadow shadow_;  // while a snapshot is written
  uint32_t size_ = 0, cursor_ = 0;
  float highest_priority_ = 0;  // ever given; 0: none yet
  uint64_t updates_ = 0, stale_ = 0, refused_ = 0, waited_ = 0, capped_ = 0, ages_ = 0;
};

// Whether all are finite and at least 0.
bool are_priorities(const float *priorities, uint32_t count);

}  // namespace accel_rl::replay

#endif
