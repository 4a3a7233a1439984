// How a tasklet gets the rows of its shares, in the order of the pass: run after run, each run in
// WRAM. SEQ, STR and draws with replacement; those of RAN are in shuffled.h.
//
// A tasklet sleeps while it waits for its own transfer. So it reads its next run as soon as it is
// done with the last, while others still work; see move_on() in tabular.c.

#ifndef ACCEL_RL_UPMEM_ROWS_H
#define ACCEL_RL_UPMEM_ROWS_H

#include <defs.h>
#include <mram.h>

#include "state.h"

enum {
  STEP = ARL_ORDER == ARL_STR ? ARL_STRIDE : 1,
  // From this step on a span of rows takes the DMA engine longer than its rows one by one.
  FARTHEST = 8,
  SINGLE = ARL_ORDER == ARL_RAN_REPLACEMENT || STEP > FARTHEST,
  WANTED = SINGLE ? 1 : (SEQUENTIAL ? MOST_DMA : SHARE * STEP * (int)sizeof(arl_record)),
  READ = WANTED > MOST_DMA ? MOST_DMA : (WANTED < WIDEST ? WIDEST : (WANTED + 7) / 8 * 8),
};

// Rows in WRAM: every STEP-th from `rows`.
typedef struct {
  const uint8_t *rows;
  uint32_t count;
} run_t;

// A tasklet's place in the order of a pass.
typedef struct {
  uint32_t position;     // in the order
  uint32_t row, offset;  // the next row; STR: the first row of the present stride
  uint32_t state;        // of draws
  run_t ready;           // read ahead; count 0: nothing is
} reader_t;

static __dma_aligned uint8_t read_buffers[SEQUENTIAL ? 1 : NR_TASKLETS][READ];

ARL_INLINE const uint8_t *row_of(run_t run, uint32_t k, uint32_t bytes) {
  return run.rows + k * STEP * bytes;
}

ARL_INLINE reader_t begin_rows(uint32_t key) { return (reader_t){.state = key}; }

// Rows of the chunk from the present one to where the order turns.
ARL_INLINE uint32_t rows_ahead(const reader_t *at) {
  return (chunk.length - at->row + STEP - 1) / STEP;
}

ARL_INLINE void skip_rows(reader_t *at, uint32_t count) {
  at->position += count;
  if (ARL_ORDER == ARL_RAN_REPLACEMENT) {
    at->state = arl_jump(at->state, count);
    return;
  }
  while (count > 0) {
    const uint32_t ahead = rows_ahead(at);
    if (count < ahead) {
      at->row += count * STEP;
      return;
    }
    count -= ahead;
    at->row = ++at->offset;
  }
}

// Read up to `most` rows, at least one.
ARL_INLINE run_t read_run(reader_t *at, uint32_t most) {
  uint8_t *buffer = read_buffers[SEQUENTIAL ? 0 : me()];
  const uint32_t shift = row_shift();
  uint32_t count = 1, row = at->row;
  if (ARL_ORDER == ARL_RAN_REPLACEMENT) {
    uint32_t state = at->state;
    row = arl_below_large(arl_draw(&state), chunk.length);
  } else if (!SINGLE) {
    const uint32_t fit = parameters.wide ? (READ / sizeof(arl_wide_row) - 1) / STEP + 1
                                         : (READ / sizeof(arl_record) - 1) / STEP + 1;
    const uint32_t ahead = rows_ahead(at);
    count = most < ahead ? most : ahead;
    if (count > fit) count = fit;
  }
  mram_read(records + (row << shift), buffer, ((count - 1) * STEP + 1) << shift);
  skip_rows(at, count);
  return (run_t){buffer, count};
}

// Up to `most` rows, at least one, that were read ahead or are read now.
ARL_INLINE run_t next_run(reader_t *at, uint32_t most) {
  const run_t ready = at->ready;
  if (ready.count == 0) return read_run(at, most);
  at->ready.count = 0;
  return ready;
}

// Read what next_run() will want. `ends`: positions of the order that the next block ends before.
ARL_INLINE void read_ahead(reader_t *at, uint32_t most, uint32_t ends) {
  (void)ends;
  if (most > 0) at->ready = read_run(at, most);
}

#endif
