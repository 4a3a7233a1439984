// How a pass over a chunk begins, for all that walks one.

#ifndef ACCEL_RL_FFI_BEGIN_H
#define ACCEL_RL_FFI_BEGIN_H

#include "launch.h"
#include "order.h"

typedef struct {
  const arl_wide_row *rows;
  arl_cursor at;   // in the pass's order
  uint32_t draws;  // the stream of the rule's choices
} arl_pass;

// Pass `k` of the launch over chunk `chunk`; RAN shuffles into `blocks` and `rows` (see arl_start).
ARL_INLINE arl_pass arl_begin(const arl_launch *launch, int64_t chunk, uint32_t k, uint16_t *blocks,
                              uint8_t *rows) {
  const uint32_t pass = launch->first_pass + k, dpu = launch->dpus[chunk];
  const uint32_t key = arl_stream(launch->seed, pass, dpu, ARL_ORDER_STREAM);
  return (arl_pass){
      .rows = launch->rows + chunk * launch->capacity,
      .at = arl_start((arl_order)launch->order, launch->stride, (uint32_t)launch->lengths[chunk],
                      key, blocks, rows),
      .draws = arl_stream(launch->seed, pass, dpu, ARL_ACTION_STREAM),
  };
}

#endif
