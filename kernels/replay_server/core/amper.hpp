// AMPER-fr's exact radius search in software: random slots are tried, and kept if they match one
// of the groups' queries. See docs/amper.md; the law is that of accel_rl.replay.amper_fr("exact").

#ifndef ACCEL_RL_REPLAY_AMPER_HPP
#define ACCEL_RL_REPLAY_AMPER_HPP

#include <cstdint>
#include <vector>

#include "schema.hpp"
#include "sum_tree.hpp"

namespace accel_rl::replay {

// The search of one sample, in steps: weights may change between them, and each draw is by those
// of its step.
class AmperSearch {
 public:
  // Draws from the first `size` slots, at least one of which has a weight.
  void begin(const AmperConfig &config, const SumTree &tree, uint32_t size, uint64_t seed,
             uint32_t batch);

  // Look at about `work` weights. Writes slots [batch] and, once it returns true, probabilities
  // [batch]. May throw std::bad_alloc.
  bool step(const SumTree &tree, uint64_t work, uint32_t *slots, double *probabilities);

  // Draws so far; they begin anew where trying fails. place(j): which of the batch was the j-th.
  uint32_t drawn() const { return drawn_; }
  bool in_order() const { return stage_ == Stage::trying; }
  uint32_t place(uint32_t j) const { return in_order() ? j : order_[j].place; }

 private:
  enum class Stage : uint8_t { trying, counting, picking };
  struct Pick {
    uint32_t rank, place;  // of a member, by slot; in the batch
  };

  double place_of(float weight, uint32_t slot) const;
  bool matches(float weight, uint32_t slot) const;
  bool is_member(float weight, uint32_t slot) const {
    return empty_ ? weight > 0 : matches(weight, slot);
  }
  double included(float weight, uint32_t slot) const;
  bool try_slots(const SumTree &tree, uint64_t work, uint32_t *slots, double *inclusion);
  void count_members(const SumTree &tree, uint64_t work);
  bool pick_members(const SumTree &tree, uint64_t work, uint32_t *slots, double *inclusion);
  uint32_t next_member(const SumTree &tree, uint32_t slot) const;

  Stage stage_ = Stage::trying;
  uint32_t groups_ = 0, size_ = 0, batch_ = 0, drawn_ = 0;
  uint64_t seed_ = 0;
  double highest_ = 0, reach_ = 0, scale_ = 0;
  double low_[most_groups] = {}, high_[most_groups] = {};  // each group's finds, of places
  uint64_t tried_ = 0, accepted_ = 0;
  // Where trying fails: members by blocks of slots, then those of the ranks that were drawn.
  bool empty_ = false;  // nothing matches: all that have a weight are members
  std::vector<uint32_t> counts_;
  std::vector<Pick> order_;
  uint32_t members_ = 0;
  uint32_t block_ = 0, before_ = 0;  // members of the blocks before this one
  uint32_t slot_ = 0, seen_ = 0;     // next to look at, and members of its block before it
};

}  // namespace accel_rl::replay

#endif
