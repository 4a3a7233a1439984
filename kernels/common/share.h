// How workers (a DPU's tasklets) share a target block. Each aims a run of rows, then applies the
// updates of the entries that it owns, in row order. What a worker has aimed it also sorts by
// owner, into lists, so that no owner looks at updates of others.

#ifndef ACCEL_RL_COMMON_SHARE_H
#define ACCEL_RL_COMMON_SHARE_H

#include "block.h"

// Lists of updates, one for each owner and worker. All heads are ARL_NO_UPDATE between blocks.
typedef struct {
  uint16_t *heads;  // [workers][workers]: of an owner, by the worker who aimed
  uint16_t *next;   // [B]
} arl_lists;

enum { ARL_NO_UPDATE = 0xFFFF, ARL_MAX_SHARED_BLOCK = 0xFFFF };

typedef struct {
  uint32_t first, end;
} arl_span;

// The rows of a block of `count` that a worker aims.
ARL_INLINE arl_span arl_share_of(uint32_t count, uint32_t worker, uint32_t workers) {
  const uint32_t rows = (count + workers - 1) / workers, first = worker * rows;
  if (first >= count) return (arl_span){count, count};
  return (arl_span){first, count - first < rows ? count : first + rows};
}

// Worker that applies updates of an entry, without a division or a long product, which DPUs lack.
// 25 spreads consecutive entries over the high bits of a byte.
ARL_INLINE uint32_t arl_owner(uint32_t entry, uint32_t workers) {
  return (entry * 25 & 255) * workers >> 8;
}

// List the updates of a share. The loop runs backwards: heads are pushed in front, so lists end up
// in row order, on which FP32 results depend.
ARL_INLINE void arl_list(arl_lists lists, arl_updates updates, arl_span share, uint32_t worker,
                         uint32_t workers) {
  for (uint32_t k = share.end; k-- > share.first;) {
    uint16_t *head = lists.heads + arl_owner(updates.entries[k], workers) * workers + worker;
    lists.next[k] = *head;
    *head = (uint16_t)k;
  }
}

// Apply an owner's updates, and empty its lists.
ARL_INLINE void arl_apply_owned(arl_program program, arl_updates updates, arl_lists lists,
                                arl_value *q, const arl_rates *rates, uint32_t owner,
                                uint32_t workers) {
  uint16_t *heads = lists.heads + owner * workers;
  for (uint32_t worker = 0; worker < workers; ++worker) {
    uint32_t k = heads[worker];
    if (k == ARL_NO_UPDATE) continue;
    heads[worker] = ARL_NO_UPDATE;
    for (; k != ARL_NO_UPDATE; k = lists.next[k]) arl_apply(program, updates, k, q, rates);
  }
}

#endif
