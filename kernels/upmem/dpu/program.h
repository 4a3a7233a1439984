// A program, fixed when it is compiled, as everything that follows from it: the macros below are
// given to the compiler. A DPU is too slow to look at what does not change.

#ifndef ACCEL_RL_UPMEM_PROGRAM_H
#define ACCEL_RL_UPMEM_PROGRAM_H

#if !defined ARL_NUMERICS || !defined ARL_RULE || !defined ARL_ORDER || !defined ARL_STRIDE || \
    !defined ARL_BLOCK || !defined ARL_STATES || !defined ARL_ACTIONS ||                       \
    !defined ARL_RANDOM_BLOCKS
#error "see kernels/upmem/dpu/CMakeLists.txt for the macros of a program"
#endif

#define ARL_SHIFT_AND_ADD
#define ARL_WIDE 0

#include "../interface.h"
#include "share.h"

enum {
  SIZE = ARL_STATES * ARL_ACTIONS,
  TABLES = ARL_RULE == ARL_DOUBLE_Q_LEARNING ? 2 : 1,
  ENTRIES = SIZE * TABLES,
  MOST_DMA = 2048,
  PIECE = 32,  // listed entries that a tasklet stores at a time
  WIDEST = sizeof(arl_wide_row),
  SHARE = (ARL_BLOCK + NR_TASKLETS - 1) / NR_TASKLETS,  // most rows of a block that a tasklet aims
  SEQUENTIAL = ARL_BLOCK == 1,  // one tasklet learns row after row, the others wait
};

_Static_assert(ARL_BLOCK <= ARL_MAX_SHARED_BLOCK, "lists of updates hold 16-bit positions");
_Static_assert(sizeof(arl_entry) == 4, "entries move in pairs");

static const arl_program program = {
    .rule = (arl_rule)ARL_RULE,
    .order = (arl_order)ARL_ORDER,
    .stride = ARL_STRIDE,
    .block = ARL_BLOCK,
    .actions = ARL_ACTIONS,
    .size = SIZE,
    .groups = 1,
};

#endif
