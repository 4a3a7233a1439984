// Tabular training on a DPU: passes of one program over the chunk in MRAM, on tables in WRAM. The
// semantics are those of docs/tabular-semantics.md, docs/upmem-backend.md walks through the code.

#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <string.h>

#include "state.h"

#define ARL_IS_RAN (ARL_ORDER == 2)
_Static_assert(ARL_RAN == 2, "ARL_IS_RAN is for the preprocessor");

#if ARL_IS_RAN
#include "shuffled.h"
#else
#include "rows.h"
#endif

BARRIER_INIT(everybody, NR_TASKLETS);

// The updates of a target block, and who applies which.
static uint32_t entries[ARL_BLOCK];
static arl_value targets[ARL_BLOCK];
static uint16_t heads[NR_TASKLETS * NR_TASKLETS], next_update[ARL_BLOCK];
static const arl_updates updates = {entries, targets};
static const arl_lists lists = {heads, next_update};

typedef struct {
  arl_value alpha, gamma, epsilon;
} rates_t;

ARL_INLINE arl_value entry_of(uint32_t bits) {
  arl_value value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Rates that were known to the compiler, or else the launch's.
ARL_INLINE rates_t rates_of_launch(void) {
#ifdef ARL_ALPHA
  return (rates_t){ARL_ALPHA, ARL_GAMMA, ARL_EPSILON};
#else
  return (rates_t){entry_of(parameters.alpha), entry_of(parameters.gamma),
                   entry_of(parameters.epsilon)};
#endif
}

// A tasklet in a pass.
typedef struct {
  reader_t at;
  uint32_t draws;  // the stream of the rule's choices, at the reader's position
  uint32_t turn;   // tasklet who reads ahead for all
} pass_t;

ARL_INLINE arl_row next_row(pass_t *pass, run_t run, uint32_t k, const int wide) {
  const void *from = row_of(run, k, wide ? sizeof(arl_wide_row) : sizeof(arl_record));
  arl_row row = wide ? arl_read_wide(from) : arl_read_record(from, codebook);
  arl_resolve(program.rule, &row, &pass->draws, parameters.explore, SIZE, ARL_ACTIONS);
  return row;
}

ARL_INLINE arl_value target_of(const arl_row *row, rates_t rates) {
  // A DPU predicts no branches, so this one costs less than a product with zero.
  if (!row->bootstrap) return arl_add(row->reward, arl_splat(0));
  return arl_target(program.rule, row, q, rates.gamma, rates.epsilon, SIZE, ARL_ACTIONS, 1);
}

// Rows of a run: their targets from position `first` of the block on, or, one after the other,
// their updates.
ARL_INLINE void learn_run(pass_t *pass, run_t run, rates_t rates, uint32_t first, const int wide) {
  for (uint32_t k = 0; k < run.count; ++k) {
    const arl_row row = next_row(pass, run, k, wide);
    const arl_value target = target_of(&row, rates);
    if (SEQUENTIAL) {
      q[row.entry] = arl_move(q[row.entry], target, rates.alpha);
    } else {
      entries[first + k] = row.entry;
      targets[first + k] = target;
    }
  }
}

// The rows of a share.
ARL_INLINE void learn_share(pass_t *pass, arl_span share, rates_t rates) {
  for (uint32_t k = share.first; k < share.end;) {
    const run_t run = next_run(&pass->at, share.end - k);
    if (parameters.wide)
      learn_run(pass, run, rates, k, 1);
    else
      learn_run(pass, run, rates, k, 0);
    k += run.count;
  }
}

ARL_INLINE uint32_t rows_of_block(uint32_t start) {
  const uint32_t left = chunk.length - start;
  return left < ARL_BLOCK ? left : ARL_BLOCK;
}

// Go to this tasklet's share of the block that begins at position `start`. Returns the share;
// `full` is that of a full block.
ARL_INLINE arl_span move_on(pass_t *pass, uint32_t start, arl_span full) {
  const uint32_t count = rows_of_block(start);
  const arl_span share = count == ARL_BLOCK ? full : arl_share_of(count, me(), NR_TASKLETS);
  const uint32_t rows = start + share.first - pass->at.position;
  if (arl_is_random(program.rule)) pass->draws = arl_jump(pass->draws, 2 * rows);
  skip_rows(&pass->at, rows);
  if (!ARL_IS_RAN || pass->turn == me())
    read_ahead(&pass->at, share.end - share.first, start + count);
  pass->turn = pass->turn + 1 < NR_TASKLETS ? pass->turn + 1 : 0;
  return share;
}

ARL_INLINE void sweep_blocks(pass_t *pass, rates_t rates) {
  const arl_rates shared = {&rates.alpha, &rates.epsilon, NULL};
  const arl_span full = arl_share_of(ARL_BLOCK, me(), NR_TASKLETS);
  arl_span share = move_on(pass, 0, full);
  if (ARL_IS_RAN) barrier_wait(&everybody);
  for (uint32_t start = 0; start < chunk.length; start += ARL_BLOCK) {
    learn_share(pass, share, rates);
    arl_list(lists, updates, share, me(), NR_TASKLETS);
    if (chunk.length - start > ARL_BLOCK) share = move_on(pass, start + ARL_BLOCK, full);
    barrier_wait(&everybody);
    arl_apply_owned(program, updates, lists, q, &shared, me(), NR_TASKLETS);
    barrier_wait(&everybody);
  }
}

ARL_INLINE void one_pass(uint32_t index, rates_t rates) {
  const uint32_t key = arl_stream(parameters.seed, index, chunk.dpu, ARL_ORDER_STREAM);
#if ARL_IS_RAN
  draw_order(key);
  barrier_wait(&everybody);
  make_order();
  barrier_wait(&everybody);
#endif
  pass_t pass = {.at = begin_rows(key)};
  if (arl_is_random(program.rule))
    pass.draws = arl_stream(parameters.seed, index, chunk.dpu, ARL_ACTION_STREAM);
  if (!SEQUENTIAL)
    sweep_blocks(&pass, rates);
  else if (me() == 0)
    learn_share(&pass, (arl_span){0, chunk.length}, rates);
}

// Tables between MRAM and WRAM, each tasklet its pieces.
ARL_INLINE void move_tables(const int store) {
  for (uint32_t at = me() * MOST_DMA; at < sizeof q; at += NR_TASKLETS * MOST_DMA) {
    const uint32_t bytes = sizeof q - at < MOST_DMA ? sizeof q - at : MOST_DMA;
    if (store)
      mram_write((const char *)q + at, (__mram_ptr char *)tables + at, bytes);
    else
      mram_read((const __mram_ptr char *)tables + at, (char *)q + at, bytes);
  }
}

// The listed entries of each table, without gaps, from WRAM to MRAM, each tasklet its pieces. They
// lie on the stack, so that tables have the rest of WRAM.
ARL_INLINE void store_listed(void) {
  __dma_aligned uint16_t list[PIECE];
  __dma_aligned arl_entry values[PIECE];
  const uint32_t listed = parameters.listed;
  for (uint32_t at = me() * PIECE; at < listed; at += NR_TASKLETS * PIECE) {
    const uint32_t count = listed - at < PIECE ? listed - at : PIECE;
    mram_read(visited + at, list, count * sizeof *list);
    for (uint32_t table = 0; table < TABLES; ++table) {
      const arl_entry *from = q + table * SIZE;
      for (uint32_t k = 0; k < count; k += 4) {  // fewer jumps: lists come in fours
        values[k] = from[list[k]];
        values[k + 1] = from[list[k + 1]];
        values[k + 2] = from[list[k + 2]];
        values[k + 3] = from[list[k + 3]];
      }
      mram_write(values, tables + table * listed + at, count * sizeof *values);
    }
  }
}

int main(void) {
  if (me() == 0)
    perfcounter_config(parameters.count_instructions ? COUNT_INSTRUCTIONS : COUNT_CYCLES, true);
  move_tables(0);
  for (uint32_t k = 0; k < NR_TASKLETS; ++k) heads[me() * NR_TASKLETS + k] = ARL_NO_UPDATE;
  barrier_wait(&everybody);
  if (chunk.length > 0) {
    const rates_t rates = rates_of_launch();
    for (uint32_t k = 0; k < parameters.num_passes; ++k) one_pass(parameters.first_pass + k, rates);
    barrier_wait(&everybody);
  }
  if (parameters.listed > 0)
    store_listed();
  else
    move_tables(1);
  barrier_wait(&everybody);
  if (me() == 0) counted = perfcounter_get();
  return 0;
}
