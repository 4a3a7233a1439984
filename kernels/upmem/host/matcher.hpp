// Associative searches on a set of DPUs: keys go there once, then launches search or change them.

#ifndef ACCEL_RL_UPMEM_MATCHER_HPP
#define ACCEL_RL_UPMEM_MATCHER_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common.hpp"
#include "dpus.hpp"
#include "report.hpp"

namespace accel_rl::upmem {

// Keys and the program that searches them. DPU d has slots d * slots() to (d + 1) * slots() - 1.
struct Keys {
  std::string path;     // of the program
  uint32_t bytes = 4;   // of a key: 1, 2 or 4, as the program was compiled for
  uint32_t groups = 1;  // of 64 slots, of each DPU

  uint32_t slots() const { return groups * ARL_MATCH_GROUP; }
  size_t key_bytes() const { return static_cast<size_t>(slots()) * bytes; }
  size_t line_bytes() const { return static_cast<size_t>(groups) * 8; }
};

class Matcher {
 public:
  // Throws Error: too few DPUs, an invalid profile, a program that cannot be loaded, or more keys
  // than the MRAM holds beside the match lines of a query.
  Matcher(const Keys &keys, uint32_t dpus, const std::string &profile, Mode mode,
          bool count_instructions);

  // Put keys [D][slots], and their valid bits [D][groups], into MRAM. Throws Error as all below: a
  // transfer failed or a DPU stopped. The DPUs are then freed, and later calls throw too.
  void load(const void *keys, const uint64_t *valid);

  // Give slots new keys; of a slot that is there twice the last counts. `slots`: of all DPUs.
  void update(const uint32_t *slots, const uint32_t *keys, const uint8_t *valid, size_t count);

  // Counts [answers][D] of matches, and if `lines` is no null pointer, match lines
  // [answers][D][groups]: an answer for each query, or for a union one. A union takes one launch,
  // and as many queries as match.h says.
  void search(arl_match_work work, const arl_match_query *queries, uint32_t count, uint32_t *counts,
              uint64_t *lines);

  Report report();

 private:
  // Queue a launch of what is in parameters_, and the fetching of its counter.
  void launch();
  void count();  // what it counted, once it is done
  void search_some(const arl_match_query *queries, uint32_t count, uint32_t answers,
                   uint32_t *counts, uint64_t *lines);
  void update_some(const std::vector<std::vector<arl_match_update>> &lists, size_t first);

  std::mutex mutex_;
  Keys keys_;
  uint32_t dpus_count_;
  Report report_;
  // What transfers read and write; DPUs are freed before these are.
  arl_match_parameters parameters_ = {};
  std::vector<arl_match_pending> pending_;
  std::vector<arl_match_update> updates_;  // [D][longest]
  std::vector<uint32_t> counts_;           // [D][answers, even]
  std::vector<uint64_t> counted_, lines_;  // [D], [D][answers][groups]
  std::unique_ptr<Dpus> dpus_;
};

}  // namespace accel_rl::upmem

#endif
