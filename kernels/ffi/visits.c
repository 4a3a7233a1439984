// How often passes visit each entry, counted without learning.

#include <stdlib.h>
#include <string.h>

#define ARL_NUMERICS ARL_FP32  // visits do not depend on it
#include "begin.h"
#include "block.h"

static void count_pass(const arl_launch *launch, arl_pass pass, uint32_t *counts) {
  const arl_rule rule = (arl_rule)launch->rule;
  const arl_order order = (arl_order)launch->order;
  for (uint32_t t = 0; t < pass.at.length; ++t) {
    arl_row row = arl_read_wide(pass.rows + arl_next(order, &pass.at));
    arl_resolve(rule, &row, &pass.draws, launch->explore, launch->size, launch->actions);
    counts[row.entry] += 1;
  }
}

int arl_visits(const arl_launch *launch, uint32_t *counts, int64_t first, int64_t last) {
  uint16_t *blocks = NULL;
  uint8_t within[ARL_RANDOM_BLOCK];
  if (launch->order == ARL_RAN) {
    blocks = malloc((arl_random_blocks((uint32_t)launch->capacity) + 1) * sizeof *blocks);
    if (!blocks) return -1;
  }
  for (int64_t chunk = first; chunk < last; ++chunk) {
    uint32_t *of_chunk = counts + chunk * launch->entries;
    memset(of_chunk, 0, (size_t)launch->entries * sizeof *of_chunk);
    for (uint32_t k = 0; k < launch->num_passes; ++k)
      count_pass(launch, arl_begin(launch, chunk, k, blocks, within), of_chunk);
  }
  free(blocks);
  return 0;
}
