// How a tasklet gets the rows of its shares in RAN: blocks of 128 rows, each read whole, in random
// order; rows within a block in another. Tasklets share the blocks in WRAM: one of them reads those
// that the next target block needs.

#ifndef ACCEL_RL_UPMEM_SHUFFLED_H
#define ACCEL_RL_UPMEM_SHUFFLED_H

#include <defs.h>
#include <mram.h>

#include "state.h"

enum {
  // Blocks that two consecutive target blocks can touch, the short one among them.
  RING = SEQUENTIAL ? 1 : (2 * ARL_BLOCK - 2) / ARL_RANDOM_BLOCK + 3,
  ROW_SWAPS = ARL_RANDOM_BLOCK - 1,
};

// Rows in WRAM: row order[k] from `rows`.
typedef struct {
  const uint8_t *rows, *order;
  uint32_t count;
} run_t;

// A tasklet's place in the order of a pass.
typedef struct {
  uint32_t position;       // in the order
  uint32_t block, within;  // place among the blocks, and in the order within one
} reader_t;

static __dma_aligned uint8_t ring[RING][ARL_RANDOM_BLOCK * WIDEST];
static uint16_t block_order[ARL_RANDOM_BLOCKS];
static uint8_t row_order[ARL_RANDOM_BLOCK], short_order[ARL_RANDOM_BLOCK];
static uint16_t picks[ROW_SWAPS + ARL_RANDOM_BLOCKS];  // what each swap swaps with
static uint32_t short_block, short_rows;  // where the chunk's last block is, and its rows
static uint32_t blocks_read;              // of this pass

ARL_INLINE const uint8_t *row_of(run_t run, uint32_t k, uint32_t bytes) {
  return run.rows + run.order[k] * bytes;
}

// What arl_start() does, shared: first, by all tasklets, the draws, which take most of the time.
ARL_INLINE void draw_order(uint32_t key) {
  const uint32_t blocks = arl_random_blocks(chunk.length), swaps = ROW_SWAPS + blocks - 1;
  const arl_span share = arl_share_of(swaps, me(), NR_TASKLETS);
  uint32_t state = arl_jump(key, share.first);
  for (uint32_t k = share.first; k < share.end; ++k) {
    const uint32_t last = k < ROW_SWAPS ? ROW_SWAPS - k : swaps - k;
    picks[k] = (uint16_t)arl_below(arl_draw(&state), last + 1);
  }
}

// Then the swaps: one tasklet orders the rows within a block, another the blocks.
ARL_INLINE void make_order(void) {
  const uint32_t blocks = arl_random_blocks(chunk.length);
  const uint32_t rows = chunk.length - (blocks - 1) * ARL_RANDOM_BLOCK;
  if (me() == 0) {
    for (uint32_t k = 0; k < ARL_RANDOM_BLOCK; ++k) row_order[k] = (uint8_t)k;
    for (uint32_t k = 0; k < ROW_SWAPS; ++k) {
      const uint8_t other = row_order[picks[k]];
      row_order[picks[k]] = row_order[ROW_SWAPS - k];
      row_order[ROW_SWAPS - k] = other;
    }
    for (uint32_t k = 0, kept = 0; k < ARL_RANDOM_BLOCK; ++k)
      if (row_order[k] < rows) short_order[kept++] = row_order[k];
    short_rows = rows;
    blocks_read = 0;
  }
  if (me() == 1 % NR_TASKLETS) {
    const uint16_t *pick = picks + ROW_SWAPS;
    for (uint32_t k = 0; k < blocks; ++k) block_order[k] = (uint16_t)k;
    for (uint32_t last = blocks - 1; last > 0; --last, ++pick) {
      const uint16_t other = block_order[*pick];
      block_order[*pick] = block_order[last];
      block_order[last] = other;
    }
    for (short_block = 0; block_order[short_block] != blocks - 1;) ++short_block;
  }
}

ARL_INLINE reader_t begin_rows(uint32_t key) {
  (void)key;
  return (reader_t){0};
}

ARL_INLINE uint32_t rows_ahead(const reader_t *at) {
  return (at->block == short_block ? short_rows : ARL_RANDOM_BLOCK) - at->within;
}

ARL_INLINE void skip_rows(reader_t *at, uint32_t count) {
  at->position += count;
  for (uint32_t ahead; count >= (ahead = rows_ahead(at)); count -= ahead) {
    ++at->block;
    at->within = 0;
  }
  at->within += count;
}

// Have all blocks up to `last` in WRAM.
ARL_INLINE void read_blocks(uint32_t last) {
  const uint32_t shift = row_shift();
  for (; blocks_read <= last; ++blocks_read) {
    const uint32_t first = block_order[blocks_read] * (uint32_t)ARL_RANDOM_BLOCK;
    const uint32_t rows = blocks_read == short_block ? short_rows : ARL_RANDOM_BLOCK;
    mram_read(records + (first << shift), ring[blocks_read % RING], rows << shift);
  }
}

// Up to `most` rows, at least one.
ARL_INLINE run_t next_run(reader_t *at, uint32_t most) {
  const uint32_t ahead = rows_ahead(at);
  const uint8_t *order = at->block == short_block ? short_order : row_order;
  const run_t run = {ring[at->block % RING], order + at->within, most < ahead ? most : ahead};
  if (SEQUENTIAL) read_blocks(at->block);
  skip_rows(at, run.count);
  return run;
}

// Read the blocks of the positions before `ends`.
ARL_INLINE void read_ahead(reader_t *at, uint32_t most, uint32_t ends) {
  (void)most;
  reader_t end = *at;
  skip_rows(&end, ends - end.position);
  read_blocks(end.within > 0 ? end.block : end.block - 1);
}

#endif
