// How often passes visit each entry, counted without learning.

#include <stdlib.h>
#include <string.h>

#define ARL_NUMERICS ARL_FP32  // visits do not depend on it
#include "block.h"
#include "launch.h"

static void count_pass(const arl_launch *launch, int64_t chunk, uint32_t pass, uint16_t *blocks,
                       uint32_t *counts) {
  const arl_rule rule = (arl_rule)launch->rule;
  const arl_order order = (arl_order)launch->order;
  const uint32_t dpu = launch->dpus[chunk], length = (uint32_t)launch->lengths[chunk];
  const arl_wide_row *rows = launch->rows + chunk * launch->capacity;
  uint32_t key = arl_stream(launch->seed, pass, dpu, ARL_ORDER_STREAM);
  uint32_t draws = arl_stream(launch->seed, pass, dpu, ARL_ACTION_STREAM);
  uint8_t within[ARL_RANDOM_BLOCK];
  arl_cursor at = arl_start(order, launch->stride, length, key, blocks, within);
  for (uint32_t t = 0; t < length; ++t) {
    arl_row row = arl_read_wide(rows + arl_next(order, &at));
    arl_resolve(rule, &row, &draws, launch->explore, launch->size, launch->actions);
    counts[row.entry] += 1;
  }
}

int arl_visits(const arl_launch *launch, uint32_t *counts, int64_t first, int64_t last) {
  uint16_t *blocks = NULL;
  if (launch->order == ARL_RAN) {
    blocks = malloc((arl_random_blocks((uint32_t)launch->capacity) + 1) * sizeof *blocks);
    if (!blocks) return -1;
  }
  for (int64_t chunk = first; chunk < last; ++chunk) {
    uint32_t *of_chunk = counts + chunk * launch->entries;
    memset(of_chunk, 0, (size_t)launch->entries * sizeof *of_chunk);
    for (uint32_t k = 0; k < launch->num_passes; ++k)
      count_pass(launch, chunk, launch->first_pass + k, blocks, of_chunk);
  }
  free(blocks);
  return 0;
}
