// A set of DPUs that run one program: allocation, transfers, launches. Transfers go to whole ranks
// at once. In asynchronous mode all is queued, for each rank by itself, so that one rank moves data
// while another computes; sync() waits.

#ifndef ACCEL_RL_UPMEM_DPUS_HPP
#define ACCEL_RL_UPMEM_DPUS_HPP

#include <cstddef>
#include <cstdint>
#include <string>

#include "error.hpp"

extern "C" {  // UPMEM's headers are in C alone
#include <dpu.h>
#include <dpu_log.h>
}

namespace accel_rl::upmem {

// Whether calls return before they are done. Buffers must then last until sync().
enum class Mode { synchronous, asynchronous };

class Dpus {
 public:
  // `profile`: as dpu_alloc takes it; empty for none. Whole ranks are taken, whose other DPUs rest.
  // Throws Error: too few DPUs, an invalid profile, or a rank that is lost.
  Dpus(uint32_t count, const std::string &profile, Mode mode);
  ~Dpus();
  Dpus(const Dpus &) = delete;
  Dpus &operator=(const Dpus &) = delete;

  // Do work that leaves the DPUs unusable if it fails: they are then freed, and later calls throw.
  template <typename Work>
  void attempt(Work work) {
    if (freed_) throw Error(Kind::failed, "the DPUs were freed after an error");
    try {
      work();
    } catch (...) {
      free();
      throw;
    }
  }

  // Throws Error: not a DPU program, one that does not fit, or one whose variable `symbol` has not
  // `bytes` bytes.
  void load(const std::string &path, size_t bytes, const char *symbol = "tables");
  // Bytes of MRAM that the program leaves.
  size_t heap_bytes() const { return heap_bytes_; }
  // Throws Error: `rows` rows of a DPU, of `bytes` bytes, are more than that.
  void check_rows_fit(uint32_t rows, size_t bytes) const;

  // The same bytes to each DPU.
  void broadcast(const char *symbol, const void *data, size_t bytes);
  // To DPU d, or from it, `bytes` at data + d * stride; there from `offset` on.
  void scatter(const char *symbol, const void *data, size_t stride, size_t bytes,
               uint32_t offset = 0);
  void gather(const char *symbol, void *data, size_t stride, size_t bytes, uint32_t offset = 0);
  // Run the program on all DPUs.
  void launch();
  // Wait until all that was queued is done. Throws the first Error of it.
  void sync();

 private:
  void push(dpu_xfer_t direction, const char *symbol, uint32_t offset, uint8_t *data, size_t stride,
            size_t bytes);
  dpu_xfer_flags_t flags() const;
  // Wait until nothing is queued or running; returns the first error of it.
  dpu_error_t wait();
  void free();
  // Throw what a status means, if it is an error.
  void check(dpu_error_t status, const char *call, const char *symbol = nullptr);

  dpu_set_t set_;
  size_t heap_bytes_ = 0;
  bool freed_ = false;
  Mode mode_;
};

}  // namespace accel_rl::upmem

#endif
