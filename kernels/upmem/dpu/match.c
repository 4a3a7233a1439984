// Associative searches on a DPU: the keys of its slots lie in MRAM, tasklets stream them through
// WRAM and tell for each query which slots match. docs/upmem-backend.md walks through the code.

#include <attributes.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>

#include "../match.h"

#if ARL_KEY_BITS == 8
typedef uint8_t stored_t;
#elif ARL_KEY_BITS == 16
typedef uint16_t stored_t;
#elif ARL_KEY_BITS == 32
typedef uint32_t stored_t;
#else
#error "ARL_KEY_BITS must be 8, 16 or 32"
#endif

#define INLINE static inline __attribute__((always_inline))
// In a branch: keeps compilers from computing what rarely happens in place of a jump over it.
#define STAY_A_JUMP(variable) __asm__("" : "+r"(variable))

enum {
  KEY_BYTES = sizeof(stored_t),
  BLOCK = 1024 / KEY_BYTES / ARL_MATCH_GROUP,  // groups that a tasklet has in WRAM
  LINE = 32,                                   // slots of a word of match lines
  CELL = 8 / KEY_BYTES,                        // keys of a DMA granule
};

// A DMA granule, which is the least that can be changed in MRAM.
typedef union {
  stored_t keys[CELL];
  uint32_t lines[2];
} granule_t;

__host arl_match_parameters parameters;
__host arl_match_pending pending;
__host arl_match_query queries[ARL_MATCH_QUERIES];
__host arl_match_update updates[ARL_MATCH_UPDATES];
__host uint32_t counts[ARL_MATCH_COUNTED];
__host uint64_t counted;

static __dma_aligned stored_t key_blocks[NR_TASKLETS][BLOCK * ARL_MATCH_GROUP];
static __dma_aligned uint32_t valid_blocks[NR_TASKLETS][2 * BLOCK];
static __dma_aligned uint32_t line_blocks[NR_TASKLETS][2 * BLOCK];
static __dma_aligned granule_t granules[NR_TASKLETS];
static uint32_t tallies[NR_TASKLETS][ARL_MATCH_COUNTED];

BARRIER_INIT(everybody, NR_TASKLETS);

#define heap ((__mram_ptr uint8_t *)DPU_MRAM_HEAP_POINTER)

INLINE __mram_ptr uint8_t *valid_of(uint32_t group) {
  return heap + parameters.groups * (ARL_MATCH_GROUP * KEY_BYTES) + group * 8;
}

// Population count, by adding bits in parallel: a DPU has an instruction for it, C has no name for
// it.
INLINE uint32_t set_bits(uint32_t word) {
  word -= word >> 1 & 0x55555555;
  word = (word & 0x33333333) + (word >> 2 & 0x33333333);
  word = (word + (word >> 4)) & 0x0F0F0F0F;
  word += word >> 8;
  return (word + (word >> 16)) & 0x3F;
}

// Whether a key is in one of the ranges, by halving: `count`, a constant, is a power of two.
INLINE uint32_t in_ranges(uint32_t key, const uint32_t count) {
  const arl_match_query *at = queries;
  for (uint32_t step = count / 2; step > 0; step /= 2)
    if (at[step].first <= key) {
      at += step;
      STAY_A_JUMP(at);
    }
  return key - at->first <= at->second;
}

INLINE uint32_t hits(uint32_t key, arl_match_query query, const arl_match_work work) {
  switch (work) {
    case ARL_MATCH_TERNARY:
    case ARL_MATCH_ANY_TERNARY:
      return (key & query.second) == query.first;
    case ARL_MATCH_RANGE:
      return key - query.first <= query.second;  // below `first` it wraps around
    case ARL_MATCH_ANY_OF_FEW:
      return in_ranges(key, ARL_MATCH_FEW);
    default:
      return in_ranges(key, ARL_MATCH_QUERIES);
  }
}

// The match lines of 32 slots. Inner loops as short as this one compilers unroll; a jump over the
// OR is cheaper than a shift for each key.
INLINE uint32_t lines_of(const stored_t *keys, arl_match_query query, const arl_match_work work) {
  uint32_t lines = 0;
  for (uint32_t first = 0; first < LINE; first += 8) {
    uint32_t few = 0;
    for (uint32_t k = 0; k < 8; ++k)
      if (hits(keys[first + k], query, work)) {
        few |= 1u << k;
        STAY_A_JUMP(few);
      }
    lines |= few << first;
  }
  return lines;
}

// Matches of one query, or of ranges together, in a block.
INLINE uint32_t search_block(uint32_t words, arl_match_query query, const arl_match_work work) {
  const uint32_t *valid = valid_blocks[me()];
  uint32_t *lines = line_blocks[me()], found = 0;
  for (uint32_t k = 0; k < words; ++k) {
    lines[k] = lines_of(key_blocks[me()] + k * LINE, query, work) & valid[k];
    found += set_bits(lines[k]);
  }
  return found;
}

// The union of ternary queries in a block.
INLINE uint32_t search_any(uint32_t words) {
  const uint32_t *valid = valid_blocks[me()];
  uint32_t *lines = line_blocks[me()], found = 0;
  for (uint32_t k = 0; k < words; ++k) {
    const stored_t *keys = key_blocks[me()] + k * LINE;
    uint32_t any = 0;
    for (uint32_t q = 0; q < parameters.queries; ++q)
      any |= lines_of(keys, queries[q], ARL_MATCH_TERNARY);
    lines[k] = any & valid[k];
    found += set_bits(lines[k]);
  }
  return found;
}

// How many answers a launch gives: one for each query, or one for a union.
INLINE uint32_t answers_of_launch(void) {
  const int each = parameters.work == ARL_MATCH_TERNARY || parameters.work == ARL_MATCH_RANGE;
  return each ? parameters.queries : 1;
}

// All queries over this tasklet's share of the groups, which are neighbours.
INLINE void search_share(const arl_match_work work) {
  const uint32_t groups = parameters.groups, share = (groups + NR_TASKLETS - 1) / NR_TASKLETS;
  const uint32_t first = me() * share, end = first + share < groups ? first + share : groups;
  const uint32_t answers = answers_of_launch();
  uint32_t *tally = tallies[me()];
  for (uint32_t q = 0; q < answers; ++q) tally[q] = 0;
  for (uint32_t group = first, count; group < end; group += count) {
    count = end - group < BLOCK ? end - group : BLOCK;
    mram_read(heap + group * (ARL_MATCH_GROUP * KEY_BYTES), key_blocks[me()],
              count * (ARL_MATCH_GROUP * KEY_BYTES));
    mram_read(valid_of(group), valid_blocks[me()], count * 8);
    __mram_ptr uint8_t *to = valid_of(groups + group);
    for (uint32_t q = 0; q < answers; ++q, to += groups * 8) {
      tally[q] += work == ARL_MATCH_ANY_TERNARY ? search_any(2 * count)
                                                : search_block(2 * count, queries[q], work);
      if (parameters.lines) mram_write(line_blocks[me()], to, count * 8);
    }
  }
}

INLINE void search(void) {
  switch (parameters.work) {
    case ARL_MATCH_TERNARY:
      search_share(ARL_MATCH_TERNARY);
      break;
    case ARL_MATCH_RANGE:
      search_share(ARL_MATCH_RANGE);
      break;
    case ARL_MATCH_ANY_TERNARY:
      search_share(ARL_MATCH_ANY_TERNARY);
      break;
    case ARL_MATCH_ANY_OF_FEW:
      search_share(ARL_MATCH_ANY_OF_FEW);
      break;
    default:
      search_share(ARL_MATCH_ANY_OF_MANY);
  }
  barrier_wait(&everybody);
  const uint32_t answers = answers_of_launch();
  for (uint32_t q = me(); q < answers; q += NR_TASKLETS) {
    uint32_t sum = 0;
    for (uint32_t tasklet = 0; tasklet < NR_TASKLETS; ++tasklet) sum += tallies[tasklet][q];
    counts[q] = sum;
  }
}

// Give a slot its key. Whoever owns the slot's group may change its granules.
INLINE void update_slot(uint32_t slot, uint32_t key, uint32_t valid) {
  granule_t *granule = &granules[me()];
  __mram_ptr uint8_t *at = heap + slot / CELL * 8;
  mram_read(at, granule, 8);
  granule->keys[slot % CELL] = (stored_t)key;
  mram_write(granule, at, 8);
  at = valid_of(slot / ARL_MATCH_GROUP);
  mram_read(at, granule, 8);
  uint32_t *lines = &granule->lines[slot / LINE % 2];
  if ((*lines >> slot % LINE & 1) == valid) return;
  *lines ^= 1u << slot % LINE;
  mram_write(granule, at, 8);
}

// Every tasklet goes through all updates, for those of groups that it owns.
INLINE void update_slots(void) {
  for (uint32_t k = 0; k < pending.updates; ++k) {
    const uint32_t slot = updates[k].slot & ~ARL_MATCH_VALID;
    // Without a division; 25 spreads neighbours over the high bits of a byte.
    const uint32_t owner = (slot / ARL_MATCH_GROUP * 25 & 255) * NR_TASKLETS >> 8;
    if (owner == me()) update_slot(slot, updates[k].key, updates[k].slot >> 31);
  }
}

int main(void) {
  if (me() == 0)
    perfcounter_config(parameters.count_instructions ? COUNT_INSTRUCTIONS : COUNT_CYCLES, true);
  barrier_wait(&everybody);
  if (parameters.work == ARL_MATCH_UPDATE)
    update_slots();
  else
    search();
  barrier_wait(&everybody);
  if (me() == 0) counted = perfcounter_get();
  return 0;
}
