// Target blocks: all targets of a block use the tables as they are at the block's start; then the
// updates are applied in row order.

#ifndef ACCEL_RL_COMMON_BLOCK_H
#define ACCEL_RL_COMMON_BLOCK_H

#include "order.h"
#include "rule.h"

// A pass, fixed before it starts. Where it is a constant, so is everything that follows from it.
typedef struct {
  arl_rule rule;
  arl_order order;
  uint32_t stride;   // of STR
  uint32_t block;    // rows of a target block, B
  uint32_t actions;  // A
  uint32_t size;     // S * A
  uint32_t explore;  // epsilon in 1/65,536
  uint32_t groups;   // values that hold one entry: 1, or the vectors of its replicas
} arl_program;

// Rates, [groups] except for the discounts.
typedef struct {
  const arl_value *alpha, *epsilon;
  const arl_value *discounts;  // [2][groups]: 0, of a row that ends an episode; gamma, of others
} arl_rates;

// Updates whose targets are known.
typedef struct {
  uint32_t *entries;   // [B]
  arl_value *targets;  // [B][groups]
} arl_updates;

// Phase one for the resolved row at position k of its block; `q` is the first table.
ARL_INLINE void arl_aim(arl_program program, const arl_row *row, const arl_value *q,
                        const arl_rates *rates, arl_updates updates, uint32_t k) {
  // Looked up: a branch on the ends of episodes is mispredicted.
  const arl_value *discount = rates->discounts + row->bootstrap * program.groups;
  updates.entries[k] = row->entry;
  for (uint32_t g = 0; g < program.groups; ++g)
    updates.targets[(size_t)k * program.groups + g] =
        arl_target(program.rule, row, q + g, discount[g], rates->epsilon[g], program.size,
                   program.actions, program.groups);
}

// Phase two for the update at position k.
ARL_INLINE void arl_apply(arl_program program, arl_updates updates, uint32_t k, arl_value *q,
                          const arl_rates *rates) {
  arl_value *entry = q + (size_t)updates.entries[k] * program.groups;
  const arl_value *targets = updates.targets + (size_t)k * program.groups;
  for (uint32_t g = 0; g < program.groups; ++g)
    entry[g] = arl_move(entry[g], targets[g], rates->alpha[g]);
}

#endif
