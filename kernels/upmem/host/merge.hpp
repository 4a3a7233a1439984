// Merging the tables of DPUs, as docs/tabular-semantics.md defines it.

#ifndef ACCEL_RL_UPMEM_MERGE_HPP
#define ACCEL_RL_UPMEM_MERGE_HPP

#include <cstddef>
#include <cstdint>

#include "program.hpp"

namespace accel_rl::upmem {

enum class Merge { visits, mean, visited, damped };

// The merged table goes to `merged` [entries], which may be `base`. `tables` [chunks][entries] of the
// numerics' type; `base` [entries], the table broadcast last; `visits` [chunks][entries], updates
// since then; `alpha`, the effective step size, is used by `damped` only.
void merge(Merge how, Numerics numerics, size_t chunks, size_t entries, const void *tables,
           const void *base, const uint32_t *visits, float alpha, void *merged);

}  // namespace accel_rl::upmem

#endif
