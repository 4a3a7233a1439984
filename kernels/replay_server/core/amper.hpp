// AMPER-fr's exact radius search in software: random slots are tried, and kept if they match one
// of the groups' queries. See docs/amper.md; the law is that of accel_rl.replay.amper_fr("exact").

#ifndef ACCEL_RL_REPLAY_AMPER_HPP
#define ACCEL_RL_REPLAY_AMPER_HPP

#include <cstdint>

#include "buffer.hpp"
#include "schema.hpp"
#include "sum_tree.hpp"

namespace accel_rl::replay {

class Amper {
 public:
  // False where there is no memory.
  bool allocate(const AmperConfig &config, uint32_t capacity);

  // Draw from the first `size` slots, at least one of which has a weight. Writes slots [batch] and
  // probabilities [batch].
  void draw(const SumTree &tree, uint32_t size, uint64_t seed, uint32_t batch, uint32_t *slots,
            double *probabilities);

 private:
  struct Query {
    double highest, reach;
    double low[most_groups], high[most_groups];  // what each group finds, of weight / highest
  };

  void begin_query(const SumTree &tree, uint32_t size, uint64_t seed);
  bool matches(float weight) const;
  double included(float weight) const;
  // Slots whose weight is above 0 and, if `matching`, matches, to members_; how many.
  uint32_t list(const SumTree &tree, uint32_t size, bool matching);

  AmperConfig config_;
  Query query_ = {};
  Buffer members_;  // uint32 [capacity], touched only where trying fails
};

}  // namespace accel_rl::replay

#endif
