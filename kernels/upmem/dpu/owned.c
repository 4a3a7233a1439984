// Tabular training on a DPU whose rows are sorted by entry: passes over lanes, each sequential and
// independent of the others. The semantics are those of docs/tabular-semantics.md,
// docs/upmem-backend.md walks through the code.

#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <string.h>

#if !defined ARL_NUMERICS || !defined ARL_RULE || !defined ARL_ORDER || !defined ARL_LANES || \
    !defined ARL_WORKSPACE
#error "see kernels/upmem/dpu/CMakeLists.txt for the macros of a program"
#endif

#define ARL_SHIFT_AND_ADD
#define ARL_WIDE 0

#include "../owned.h"
#include "order.h"
#include "rule.h"

enum {
  TABLES = ARL_RULE == ARL_DOUBLE_Q_LEARNING ? 2 : 1,
  MOST_DMA = 2048,
};

_Static_assert(sizeof(arl_entry) == 4, "offsets are of 4-byte entries");
_Static_assert(ARL_ORDER == ARL_SEQ || ARL_ORDER == ARL_RAN,
               "other orders need targets that change");

__host arl_owned_parameters parameters;
__host arl_lane lanes[ARL_LANES];
__mram_noinit uint64_t exchange[ARL_WORKSPACE / 8];

// WRAM that nothing else needs: counter, runs and values of W, then a row buffer for each tasklet.
// The host divides it, so that a program does not depend on the log.
static __dma_aligned uint8_t workspace[ARL_WORKSPACE];

#define rows_in_mram ((const __mram_ptr uint8_t *)DPU_MRAM_HEAP_POINTER)

BARRIER_INIT(everybody, NR_TASKLETS);

// A tasklet in its lane.
typedef struct {
  arl_value q[TABLES];  // of the present run
  arl_value *run;       // where its values lie
  uint32_t draw;        // the first of the row's two draws
} place_t;

ARL_INLINE arl_value *value_at(uint32_t offset) { return (arl_value *)(workspace + offset); }

ARL_INLINE arl_value entry_of(uint32_t bits) {
  arl_value value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Alpha that was known to the compiler, or else the launch's.
ARL_INLINE arl_value alpha_of_launch(void) {
#ifdef ARL_ALPHA
  return ARL_ALPHA;
#else
  return entry_of(parameters.alpha);
#endif
}

// The value of a run in table k.
ARL_INLINE arl_value *in_table(arl_value *run, uint32_t k) {
  return (arl_value *)((uint8_t *)run + (k ? parameters.run_bytes : 0));
}

ARL_INLINE void load_run(place_t *at) {
  for (uint32_t k = 0; k < TABLES; ++k) at->q[k] = *in_table(at->run, k);
}

ARL_INLINE void store_run(const place_t *at) {
  for (uint32_t k = 0; k < TABLES; ++k) *in_table(at->run, k) = at->q[k];
}

ARL_INLINE void begin_next_run(place_t *at) {
  store_run(at);
  ++at->run;
  load_run(at);
}

ARL_INLINE place_t begin_lane(const arl_lane *lane, uint32_t pass) {
  place_t at = {.run = value_at(lane->run)};
  load_run(&at);
  if (arl_is_random(ARL_RULE)) {
    at.draw = arl_stream(parameters.seed, pass, lane->index, ARL_ACTION_STREAM);
    arl_draw(&at.draw);
  }
  return at;
}

// Two draws further, without a product: the factor is a constant.
ARL_INLINE uint32_t skip_a_draw(uint32_t draw) {
  return arl_times(arl_jumps.factor[1], draw) + arl_jumps.offset[1];
}

// As arl_move(). The sum lies between entry and target, so it needs no limits.
ARL_INLINE arl_value moved(arl_value entry, arl_value target, arl_value alpha) {
  return entry + arl_multiply(alpha, arl_subtract(target, entry));
}

ARL_INLINE void learn_row(place_t *at, const arl_owned_row *row, arl_value alpha) {
  uint32_t offset = row->value, second = 0;
  if (ARL_ORDER == ARL_SEQ && offset & ARL_NEXT_RUN) {
    begin_next_run(at);
    offset &= ~ARL_NEXT_RUN;
  }
  if (arl_is_random(ARL_RULE)) {
    uint32_t draw = at->draw;
    at->draw = skip_a_draw(draw);
    if (TABLES == 2)
      second = draw >> 31;
    else if (draw >> 16 < parameters.explore)  // only then the second draw matters
      offset += sizeof(arl_entry) * (1 + arl_below(arl_draw(&draw), parameters.actions));
  }
  const arl_value reward = entry_of(row->reward);
  if (second)
    at->q[TABLES - 1] =
        moved(at->q[TABLES - 1], arl_add(reward, *value_at(offset + sizeof(arl_entry))), alpha);
  else
    at->q[0] = moved(at->q[0], arl_add(reward, *value_at(offset)), alpha);
}

ARL_INLINE void learn_lane(const arl_lane *lane, void *buffer) {
  const uint32_t rows = lane->rows, fit = 1u << (parameters.buffer_shift - 3);
  const arl_value alpha = alpha_of_launch();
  for (uint32_t k = 0; k < parameters.num_passes; ++k) {
    place_t at = begin_lane(lane, parameters.first_pass + k);
    for (uint32_t done = 0, count; done < rows; done += count) {
      count = rows - done < fit ? rows - done : fit;
      // A lane that the buffer holds is still there in the second pass.
      if (k == 0 || rows > fit)
        mram_read(rows_in_mram + ((lane->row + done) << 3), buffer, count << 3);
      const arl_owned_row *row = buffer, *end = row + count;
      do learn_row(&at, row, alpha);
      while (++row != end);
    }
    store_run(&at);
  }
}

// Records of a lane that lie in a tasklet's buffer, `fit` of them, or all the time if it holds all.
typedef struct {
  uint32_t row, fit, held;
  arl_owned_row *buffer;
} window_t;

ARL_INLINE const arl_owned_row *read_records(const window_t *window, uint32_t first,
                                             uint32_t count) {
  if (window->held) return window->buffer + first;
  mram_read(rows_in_mram + ((window->row + first) << 3), window->buffer, count << 3);
  return window->buffer;
}

// The run whose head is record `head`, from a drawn row on and then those before it; `order` is the
// stream of these draws. Returns its rows.
ARL_INLINE uint32_t learn_run(place_t *at, const window_t *window, uint32_t head, uint32_t *order,
                              arl_value alpha) {
  const uint32_t rows = read_records(window, head, 1)->reward, begin = head + 1;
  uint32_t next = begin + arl_below_large(arl_draw(order), rows), left = begin + rows - next;
  for (uint32_t done = 0, count; done < rows; done += count) {
    if (left == 0) {
      next = begin;
      left = rows - done;
    }
    count = window->held || left < window->fit ? left : window->fit;
    const arl_owned_row *row = read_records(window, next, count), *end = row + count;
    do learn_row(at, row, alpha);
    while (++row != end);
    next += count;
    left -= count;
  }
  return rows;
}

// As learn_lane(), in the order RAN.
ARL_INLINE void learn_rotated(const arl_lane *lane, void *buffer) {
  const uint32_t rows = lane->rows, fit = 1u << (parameters.buffer_shift - 3);
  const arl_value alpha = alpha_of_launch();
  const window_t window = {lane->row, fit, rows <= fit, buffer};
  if (window.held) mram_read(rows_in_mram + (lane->row << 3), buffer, rows << 3);
  for (uint32_t k = 0; k < parameters.num_passes; ++k) {
    const uint32_t pass = parameters.first_pass + k;
    place_t at = begin_lane(lane, pass);
    uint32_t order = arl_stream(parameters.seed, pass, lane->index, ARL_ORDER_STREAM);
    for (uint32_t head = 0; head < rows;) {
      if (head > 0) begin_next_run(&at);
      head += 1 + learn_run(&at, &window, head, &order, alpha);
    }
    store_run(&at);
  }
}

// The workspace's first bytes between MRAM and WRAM, each tasklet its pieces.
ARL_INLINE void move_workspace(uint32_t end, const int store) {
  for (uint32_t at = ARL_COUNTER_BYTES + me() * MOST_DMA; at < end; at += NR_TASKLETS * MOST_DMA) {
    const uint32_t bytes = end - at < MOST_DMA ? end - at : MOST_DMA;
    if (store)
      mram_write(workspace + at, (__mram_ptr char *)exchange + at, bytes);
    else
      mram_read((const __mram_ptr char *)exchange + at, workspace + at, bytes);
  }
}

int main(void) {
  if (me() == 0)
    perfcounter_config(parameters.count_instructions ? COUNT_INSTRUCTIONS : COUNT_CYCLES, true);
  move_workspace(parameters.operands, 0);
  barrier_wait(&everybody);
  uint8_t *buffer = workspace + parameters.operands + (me() << parameters.buffer_shift);
  for (uint32_t k = me(); k < ARL_LANES; k += NR_TASKLETS)
    if (lanes[k].rows > 0) (ARL_ORDER == ARL_RAN ? learn_rotated : learn_lane)(lanes + k, buffer);
  barrier_wait(&everybody);
  move_workspace(ARL_COUNTER_BYTES + (TABLES * parameters.run_bytes + 7) / 8 * 8, 1);
  barrier_wait(&everybody);
  if (me() == 0) {
    *(uint64_t *)workspace = perfcounter_get();
    mram_write(workspace, exchange, ARL_COUNTER_BYTES);
  }
  return 0;
}
