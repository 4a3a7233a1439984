// Training on a set of DPUs, whatever the DPU program.

#ifndef ACCEL_RL_UPMEM_TRAINING_HPP
#define ACCEL_RL_UPMEM_TRAINING_HPP

#include <cstdint>

#include "program.hpp"
#include "report.hpp"

namespace accel_rl::upmem {

class Training {
 public:
  virtual ~Training() = default;

  virtual uint32_t dpus() const = 0;
  virtual void load_rows(const Rows &rows) = 0;
  virtual void run(const Launch &launch, const Operands &operands, void *results) = 0;
  virtual const Report &report() const = 0;
};

}  // namespace accel_rl::upmem

#endif
