// Passes over chunks, compiled once for each numerics, instruction set and width of a value.
//
// With ARL_VECTOR_BYTES 0 a launch has one replica and tables are trained in place; otherwise up to
// 64 replicas lie side by side in a tile, an entry's replicas in consecutive vectors. ARL_RUN names
// the function.

#include <stdlib.h>
#include <string.h>

#include "begin.h"
#include "block.h"
#include "tile.h"

enum { LINE = 64, RATES = 3 };

// Buffers of one thread, cut from one allocation.
typedef struct {
  arl_value *memory;
  arl_value *rates;  // [4][groups]: alpha, epsilon, 0, gamma
  arl_value *tile;   // [E][groups], of replicas only
  arl_updates updates;
  uint16_t *blocks;
  uint8_t rows[ARL_RANDOM_BLOCK];
} scratch_t;

static uint32_t groups_of(const arl_launch *launch) {
  int64_t lanes = launch->replicas < ARL_TILE ? launch->replicas : ARL_TILE;
  return (uint32_t)((lanes + ARL_LANES - 1) / ARL_LANES);
}

static uint32_t block_of(const arl_launch *launch) {
  return launch->block < launch->capacity ? launch->block : (uint32_t)launch->capacity;
}

static int allocate(const arl_launch *launch, scratch_t *scratch) {
  const size_t groups = groups_of(launch), block = block_of(launch);
  const size_t tile = ARL_LANES > 1 ? (size_t)launch->entries * groups : 0;
  const size_t blocks = launch->order == ARL_RAN ? arl_random_blocks(launch->capacity) : 0;
  size_t bytes = (4 * groups + tile + block * groups) * sizeof(arl_value);
  bytes += block * sizeof(uint32_t) + blocks * sizeof(uint16_t);
  scratch->memory = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
  if (!scratch->memory) return -1;
  // From the strictest alignment to the loosest, so that each array is aligned where the last one
  // ends.
  scratch->rates = scratch->memory;
  scratch->tile = scratch->rates + 4 * groups;
  scratch->updates.targets = scratch->tile + tile;
  scratch->updates.entries = (uint32_t *)(scratch->updates.targets + block * groups);
  scratch->blocks = (uint16_t *)(scratch->updates.entries + block);
  return 0;
}

// One pass over one chunk.
ARL_INLINE void sweep(arl_program program, const arl_wide_row *rows, arl_cursor at, uint32_t draws,
                      arl_value *q, const arl_rates *rates, arl_updates updates) {
  for (uint32_t left = at.length; left > 0;) {
    uint32_t count = left < program.block ? left : program.block;
    for (uint32_t k = 0; k < count; ++k) {
      arl_row row = arl_read_wide(rows + arl_next(program.order, &at));
      arl_resolve(program.rule, &row, &draws, program.explore, program.size, program.actions);
      arl_aim(program, &row, q, rates, updates, k);
    }
    for (uint32_t k = 0; k < count; ++k) arl_apply(program, updates, k, q, rates);
    left -= count;
  }
}

// The sweep is compiled anew for each value below, so that it is a constant in its loops.
#define SWEEP_ARGUMENTS                                                                          \
  const arl_wide_row *rows, arl_cursor at, uint32_t draws, arl_value *q, const arl_rates *rates, \
      arl_updates updates
#define SWEEP_VALUES rows, at, draws, q, rates, updates

#if ARL_VECTOR_BYTES == 0

ARL_INLINE void with_block(arl_program program, SWEEP_ARGUMENTS) {
  // Copies that no store into a table can change, so that they stay in registers.
  const arl_value alpha = *rates->alpha, epsilon = *rates->epsilon;
  const arl_value discounts[2] = {rates->discounts[0], rates->discounts[1]};
  const arl_rates copies = {&alpha, &epsilon, discounts};
  rates = &copies;
  program.groups = 1;
  if (program.block == 1) {
    uint32_t entry;
    arl_value target;
    updates = (arl_updates){&entry, &target};
    sweep(program, SWEEP_VALUES);
  } else {
    sweep(program, SWEEP_VALUES);
  }
}

ARL_INLINE void with_shape(arl_program program, SWEEP_ARGUMENTS) {
  if (program.order == ARL_SEQ)
    with_block(program, SWEEP_VALUES);
  else
    with_block(program, SWEEP_VALUES);
}

#else

// Rows cost little beside the replicas that share them, so only the width of a full tile matters.
ARL_INLINE void with_shape(arl_program program, SWEEP_ARGUMENTS) {
  if (program.groups == ARL_TILE / ARL_LANES && program.order == ARL_SEQ)
    sweep(program, SWEEP_VALUES);
  else
    sweep(program, SWEEP_VALUES);
}

#endif

// The actions of FrozenLake and CliffWalking, of Taxi, and any other number.
ARL_INLINE void with_actions(arl_program program, SWEEP_ARGUMENTS) {
  switch (program.actions) {
    case 4:
      with_shape(program, SWEEP_VALUES);
      break;
    case 6:
      with_shape(program, SWEEP_VALUES);
      break;
    default:
      with_shape(program, SWEEP_VALUES);
  }
}

static void one_pass(arl_program program, SWEEP_ARGUMENTS) {
  switch (program.rule) {
#define RULE(NAME)                       \
  case NAME:                             \
    program.rule = NAME;                 \
    with_actions(program, SWEEP_VALUES); \
    break;
    RULE(ARL_Q_LEARNING)
    RULE(ARL_SARSA)
    RULE(ARL_SARSA_EPSILON_GREEDY)
    RULE(ARL_EXPECTED_SARSA)
    RULE(ARL_DOUBLE_Q_LEARNING)
#undef RULE
    default:
      break;
  }
}

// Copy a tile's rates out of [3][R]; lanes beyond the replicas repeat the last one's.
static arl_rates load_rates(const arl_launch *launch, int64_t first, scratch_t *scratch) {
  const int64_t replicas = launch->replicas, groups = groups_of(launch);
  const arl_entry *from = launch->rates;
  arl_value *alpha = scratch->rates, *epsilon = alpha + groups, *zero = epsilon + groups;
  arl_value *gamma = zero + groups;
  arl_value *to[RATES] = {alpha, gamma, epsilon};
  for (int rate = 0; rate < RATES; ++rate)
    for (int64_t lane = 0; lane < groups * ARL_LANES; ++lane) {
      int64_t replica = first + lane < replicas ? first + lane : replicas - 1;
      memcpy((char *)to[rate] + lane * sizeof *from, from + rate * replicas + replica,
             sizeof *from);
    }
  for (int64_t g = 0; g < groups; ++g) zero[g] = arl_splat(0);
  return (arl_rates){alpha, epsilon, zero};
}

static void train(const arl_launch *launch, int64_t chunk, const arl_rates *rates,
                  scratch_t *scratch, arl_value *q) {
  const arl_program program = {
      .rule = (arl_rule)launch->rule,
      .order = (arl_order)launch->order,
      .stride = launch->stride,
      .block = block_of(launch),
      .actions = launch->actions,
      .size = launch->size,
      .explore = launch->explore,
      .groups = groups_of(launch),
  };
  for (uint32_t k = 0; k < launch->num_passes; ++k) {
    const arl_pass pass = arl_begin(launch, chunk, k, scratch->blocks, scratch->rows);
    one_pass(program, pass.rows, pass.at, pass.draws, q, rates, scratch->updates);
  }
}

#if ARL_VECTOR_BYTES == 0

static void run_item(const arl_launch *launch, int64_t item, scratch_t *scratch) {
  const arl_rates rates = load_rates(launch, 0, scratch);
  arl_value *q = (arl_value *)launch->tables + item * launch->entries;
  const arl_value *from =
      (const arl_value *)launch->table + item % launch->starts * launch->entries;
  memcpy(q, from, (size_t)launch->entries * sizeof *q);
  train(launch, item, &rates, scratch, q);
}

#else

static void run_item(const arl_launch *launch, int64_t item, scratch_t *scratch) {
  const int64_t tiles = arl_tiles(launch), chunk = item / tiles, first = item % tiles * ARL_TILE;
  const int64_t left = launch->replicas - first, real = left < ARL_TILE ? left : ARL_TILE;
  const int64_t entries = launch->entries, stride = launch->chunks * entries;
  const size_t groups = groups_of(launch);
  const arl_rates rates = load_rates(launch, first, scratch);
  const int64_t apart = launch->starts * entries;  // tables of consecutive replicas
  const arl_entry *from = (const arl_entry *)launch->table + first * apart;
  from += chunk % launch->starts * entries;
  arl_entry *to = (arl_entry *)launch->tables + first * stride + chunk * entries;
  arl_load_tile(from, apart, real, entries, groups, scratch->tile);
  train(launch, chunk, &rates, scratch, scratch->tile);
  arl_store_tile(scratch->tile, real, entries, groups, to, stride);
}

#endif

int ARL_RUN(const arl_launch *launch, int64_t first, int64_t last);

int ARL_RUN(const arl_launch *launch, int64_t first, int64_t last) {
  scratch_t scratch;
  if (allocate(launch, &scratch)) return -1;
  for (int64_t item = first; item < last; ++item) run_item(launch, item, &scratch);
  free(scratch.memory);
  return 0;
}
