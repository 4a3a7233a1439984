// Errors of the UPMEM host: what went wrong, on which DPU, and what that DPU had printed.

#ifndef ACCEL_RL_UPMEM_ERROR_HPP
#define ACCEL_RL_UPMEM_ERROR_HPP

#include <cstdint>
#include <stdexcept>
#include <string>

namespace accel_rl::upmem {

enum class Kind : int32_t {
  invalid = 1,   // an argument is out of its range
  fault,         // a DPU stopped
  lost,          // a rank does not answer as it should
  too_few_dpus,  // fewer are left than asked for
  too_large,     // program or rows exceed IRAM, WRAM or MRAM
  failed         // anything else that the host library reported
};

class Error : public std::runtime_error {
 public:
  Error(Kind kind, const std::string &message, int32_t status = 0, int64_t dpu = -1,
        std::string log = {})
      : std::runtime_error(message), kind(kind), status(status), dpu(dpu), log(std::move(log)) {}

  Kind kind;
  int32_t status;   // of dpu_error_t; 0: the library was not asked
  int64_t dpu;      // index of the DPU in its set; -1: no single one
  std::string log;  // what it printed
};

}  // namespace accel_rl::upmem

#endif
