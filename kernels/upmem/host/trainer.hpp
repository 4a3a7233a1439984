// Training on a set of DPUs: rows go there once, then launches run from a broadcast table, or from
// one for each DPU.

#ifndef ACCEL_RL_UPMEM_TRAINER_HPP
#define ACCEL_RL_UPMEM_TRAINER_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common.hpp"
#include "dpus.hpp"
#include "program.hpp"
#include "report.hpp"
#include "training.hpp"
#include "visited.hpp"

namespace accel_rl::upmem {

class Trainer final : public Training {
 public:
  // `count_instructions`: DPUs count instructions, not cycles.
  // Throws Error: too few DPUs, an invalid profile, or a program that cannot be loaded.
  Trainer(const Program &program, uint32_t dpus, const std::string &profile, Mode mode,
          bool count_instructions = false);

  const Program &program() const { return program_; }
  uint32_t dpus() const override { return dpus_count_; }

  // Put chunk d into the MRAM of DPU d; there must be as many as DPUs. Throws Error: rows out of
  // range, or too many for the MRAM, or a transfer failed.
  void load_rows(const Rows &rows) override;

  // Run passes on all DPUs, each from `table` [entries] on, or with `own_tables` from its own of
  // [D][entries]; the results go to tables [D][entries].
  // Throws Error: a DPU stopped, or a transfer failed. The DPUs are then freed, and later calls
  // throw too.
  void run(const Launch &launch, const void *table, void *tables);
  void run(const Launch &launch, const Operands &operands, void *tables) override {
    run(launch, operands.table, tables);
  }

  const Report &report() const override { return report_; }

 private:
  size_t table_bytes() const;  // as it moves: a multiple of 8

  Program program_;
  uint32_t dpus_count_;
  bool count_instructions_, wide_ = false;
  Visited visited_;
  Report report_;
  // What transfers read and write; DPUs are freed before these are.
  std::vector<arl_chunk> chunks_;
  std::vector<uint8_t> padded_;   // tables, where their bytes are no multiple of 8
  std::vector<uint32_t> values_;  // of listed entries, where there are lists
  std::vector<uint64_t> counted_;
  arl_parameters parameters_ = {};
  std::unique_ptr<Dpus> dpus_;
};

}  // namespace accel_rl::upmem

#endif
