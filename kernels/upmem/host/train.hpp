// The whole training from C++: scatter, launch, gather, merge, again. What accel_rl.pim.train does in
// JAX, with the same result: bit for bit in INT32, and in FP32 where nothing is contracted to FMA.

#ifndef ACCEL_RL_UPMEM_TRAIN_HPP
#define ACCEL_RL_UPMEM_TRAIN_HPP

#include "merge.hpp"
#include "trainer.hpp"

namespace accel_rl::upmem {

struct Schedule {
  uint32_t passes = 1, period = 1;  // period: passes between two merges
  Merge merge = Merge::visits;
};

// Train `table` [entries] in place on the rows. `launch` holds the rates, the seed, and the first
// pass; `alpha` is the effective step size. Throws Error as Trainer does, and if a number of the
// schedule is 0.
void train(Trainer &trainer, const Rows &rows, const Schedule &schedule, Launch launch, float alpha,
           void *table);

}  // namespace accel_rl::upmem

#endif
