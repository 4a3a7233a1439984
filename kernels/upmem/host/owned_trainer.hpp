// Training on a set of DPUs by the program "owned": rows sorted by entry go there once, then each
// launch sends a DPU the entries and values that it needs, and fetches the entries that it moved.

#ifndef ACCEL_RL_UPMEM_OWNED_TRAINER_HPP
#define ACCEL_RL_UPMEM_OWNED_TRAINER_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dpus.hpp"
#include "lanes.hpp"
#include "training.hpp"

namespace accel_rl::upmem {

class OwnedTrainer final : public Training {
 public:
  // As Trainer's.
  OwnedTrainer(const Program &program, uint32_t dpus, const std::string &profile, Mode mode,
               bool count_instructions = false);

  uint32_t dpus() const override { return dpus_count_; }

  // As Trainer's. Throws Error too if a DPU has more runs than the program, or more runs and values
  // than its WRAM holds.
  void load_rows(const Rows &rows) override;

  // Run passes on all DPUs, each from the table on; the last values of runs go to results [D][K *
  // R], 0 to places without a run. Throws Error as Trainer's does.
  void run(const Launch &launch, const Operands &operands, void *results) override;

  const Report &report() const override { return report_; }

 private:
  void gather_operands(const Operands &operands);
  void spread_results(uint32_t *results);

  Program program_;
  uint32_t dpus_count_;
  Report report_;
  Lanes lanes_;
  // What transfers read and write; DPUs are freed before these are.
  std::vector<uint32_t> pushed_, pulled_;  // [D], each as `exchange` without and with the counter
  std::vector<uint64_t> counted_;
  arl_owned_parameters parameters_ = {};
  Dpus dpus_;
};

}  // namespace accel_rl::upmem

#endif
