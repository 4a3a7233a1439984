// The DPUs that a process holds: one trainer, which is made anew when another program, another
// number of DPUs or another profile is asked for, and given back after an error.

#ifndef ACCEL_RL_UPMEM_DEVICE_HPP
#define ACCEL_RL_UPMEM_DEVICE_HPP

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "dpus.hpp"
#include "training.hpp"

namespace accel_rl::upmem {

struct Registered {
  Program program;
  std::string profile;
  Mode mode;
  bool count_instructions;
};

class Device {
 public:
  static Device &instance();

  // Make a program known under a number, which must stand for its contents.
  void add(int64_t id, Registered registered);
  // Throws Error: there is none of that number.
  Registered find(int64_t id);

  // Rows are identified by a token, which never comes back, so that a launch can tell whether the
  // DPUs still hold them.
  uint64_t next_token();

  // Run on as many DPUs as there are chunks; the rows go there first if they are not there. Chunks
  // with tables of their own run in rounds, one after the other, where fewer DPUs are free.
  void run(int64_t id, const Rows &rows, uint64_t token, const Launch &launch,
           const Operands &operands, void *results);

  // Free the DPUs.
  void release();
  // DPUs that are held.
  uint32_t held();
  // What was done since the process began.
  Report report();

  // Keep an error for whoever asks by its number; the last ones are kept.
  uint64_t keep(const Error &error);
  std::optional<Error> kept(uint64_t number);

 private:
  Device();
  // Take DPUs for so many chunks, in as few rounds as the free ones allow if they may be several.
  void allocate(const Registered &wanted, uint32_t chunks, bool in_rounds);
  // Run chunks with tables of their own, as many at a time as the trainer has DPUs.
  void run_in_rounds(const Program &program, const Rows &rows, const Launch &launch,
                     const void *table, void *tables);
  void collect();    // the trainer's report
  void free_dpus();  // the DPUs
  // After a fork: the DPUs are the parent's.
  void detach_after_fork();

  std::mutex mutex_;
  int owner_;  // process
  std::map<int64_t, Registered> programs_;
  std::unique_ptr<Training> trainer_;
  int64_t loaded_ = 0;     // program of the trainer
  uint32_t asked_ = 0;     // chunks for which its DPUs were taken
  uint64_t resident_ = 0;  // token of its rows; 0: none
  uint64_t token_;
  Report report_, seen_;  // all, and what of the trainer's is in it
  std::deque<std::pair<uint64_t, Error>> errors_;
  uint64_t error_ = 0;
};

}  // namespace accel_rl::upmem

#endif
