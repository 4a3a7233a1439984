// One row of experience as the rules' arithmetic sees it.

#ifndef ACCEL_RL_COMMON_ROW_H
#define ACCEL_RL_COMMON_ROW_H

#include <string.h>

#include "numerics.h"
#include "record.h"

typedef struct {
  uint32_t entry;       // of Q(s, a), in the learning table
  uint32_t next_entry;  // of Q(s', 0), in the first table
  arl_entry reward;
  uint32_t next_action;
  uint32_t bootstrap;  // 1: discount is 1; 0: the episode ended here
  uint32_t greedy;     // 1: the rule chose the greedy next action
  uint32_t second;     // 1: the second of two tables learns
} arl_row;

ARL_INLINE arl_row arl_read_wide(const arl_wide_row *from) {
  arl_row row = {.entry = from->entry, .next_entry = from->next_entry};
  memcpy(&row.reward, &from->reward, sizeof row.reward);
  row.next_action = from->meta & ARL_NEXT_ACTION_MASK;
  row.bootstrap = from->meta >> ARL_BOOTSTRAP_BIT & 1;
  return row;
}

ARL_INLINE arl_row arl_read_record(const arl_record *from, const arl_entry *codebook) {
  return (arl_row){.entry = from->state_action,
                   .next_entry = from->next_row,
                   .reward = codebook[from->reward],
                   .next_action = from->next_action,
                   .bootstrap = !(from->flags & ARL_TERMINATED)};
}

#endif
