// The update rules: each the arithmetic of one row.
//
// Tables are flat; the values of consecutive entries lie `stride` apart: 1, or the number of
// vectors that hold an entry's replicas. Rule and actions should be constants where these are
// inlined.

#ifndef ACCEL_RL_COMMON_RULE_H
#define ACCEL_RL_COMMON_RULE_H

#include "random.h"
#include "row.h"

typedef enum {
  ARL_Q_LEARNING,
  ARL_SARSA,
  ARL_SARSA_EPSILON_GREEDY,
  ARL_EXPECTED_SARSA,
  ARL_DOUBLE_Q_LEARNING,
  ARL_RULES
} arl_rule;

ARL_INLINE uint32_t arl_tables(arl_rule rule) { return rule == ARL_DOUBLE_Q_LEARNING ? 2 : 1; }

ARL_INLINE int arl_is_random(arl_rule rule) {
  return rule == ARL_SARSA_EPSILON_GREEDY || rule == ARL_DOUBLE_Q_LEARNING;
}

// Make the row's random choices with the next two draws of the stream; other rules draw nothing.
// `explore` is epsilon in 1/65,536, `size` the entries of one table.
ARL_INLINE void arl_resolve(arl_rule rule, arl_row *row, uint32_t *stream, uint32_t explore,
                            uint32_t size, uint32_t actions) {
  if (!arl_is_random(rule)) return;
  uint32_t first = arl_draw(stream), action = arl_below(arl_draw(stream), actions);
  if (rule == ARL_SARSA_EPSILON_GREEDY) {
    row->greedy = first >> 16 >= explore;
    row->next_action = action;
  } else {
    row->second = first >> 31;
    row->entry += row->second * size;
  }
}

ARL_INLINE arl_value arl_maximum(const arl_value *values, uint32_t actions, uint32_t stride) {
  arl_value best = values[0];
  for (uint32_t a = 1; a < actions; ++a) {
    arl_value value = values[a * stride];
    best = arl_select(value > best, value, best);
  }
  return best;
}

// The value that the target gives the next state; `q` is the first table.
ARL_INLINE arl_value arl_next_value(arl_rule rule, const arl_row *row, const arl_value *q,
                                    arl_value epsilon, uint32_t size, uint32_t actions,
                                    uint32_t stride) {
  const arl_value *next = q + (size_t)row->next_entry * stride;
  switch (rule) {
    case ARL_SARSA:
      return next[row->next_action * stride];
    case ARL_SARSA_EPSILON_GREEDY:
      return row->greedy ? arl_maximum(next, actions, stride) : next[row->next_action * stride];
    case ARL_EXPECTED_SARSA: {
      arl_value best = arl_maximum(next, actions, stride);
      arl_value mean = arl_mean(next, actions, stride);
      return arl_add(best, arl_multiply(epsilon, arl_subtract(mean, best)));
    }
    case ARL_DOUBLE_Q_LEARNING: {
      size_t first = row->second ? size : 0, second = row->second ? 0 : size;
      const arl_value *own = next + first * stride, *other = next + second * stride;
      arl_value best = own[0], result = other[0];
      for (uint32_t a = 1; a < actions; ++a) {
        arl_value value = own[a * stride], valued = other[a * stride];
        arl_mask better = value > best;
        result = arl_select(better, valued, result);
        best = arl_select(better, value, best);
      }
      return result;
    }
    default:
      return arl_maximum(next, actions, stride);
  }
}

// `discount` is gamma where the row bootstraps and 0 where it ends an episode. Look it up by
// row->bootstrap: a branch on the ends of episodes is mispredicted.
ARL_INLINE arl_value arl_target(arl_rule rule, const arl_row *row, const arl_value *q,
                                arl_value discount, arl_value epsilon, uint32_t size,
                                uint32_t actions, uint32_t stride) {
  arl_value next = arl_next_value(rule, row, q, epsilon, size, actions, stride);
  return arl_add(arl_splat(row->reward), arl_multiply(discount, next));
}

ARL_INLINE arl_value arl_move(arl_value entry, arl_value target, arl_value alpha) {
  return arl_add(entry, arl_multiply(alpha, arl_subtract(target, entry)));
}

#endif
