// Passes by owner, compiled once for each numerics and instruction set. Lanes lie side by side in
// a vector, each with the entry that it trains; ARL_RUN names the function.

#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "owned.h"
#include "rule.h"

enum { LANES = sizeof(arl_value) / sizeof(arl_entry) };

// A vector of lanes, each in a run of its own.
typedef struct {
  arl_value q, second;  // of the first and the second table
  arl_bits draws;       // the states of their streams
  arl_mask inside;      // all indices so far were
} lanes_t;

// Where the runs of these lanes are; `starts` and `runs` are [K][S].
typedef struct {
  uint32_t slots[LANES];
  const arl_entry *starts;
  arl_entry *runs;
  int64_t num_slots;
  bool has_second;
} places_t;

// What is the same for all rows of a replica.
typedef struct {
  arl_choice choice;
  uint32_t actions, explore;
  const arl_entry *values;
  uint32_t num_values;
  arl_value alpha;
} rule_t;

ARL_INLINE int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

ARL_INLINE arl_mask first_lanes(int64_t count) {
  arl_mask mask;
  for (int k = 0; k < LANES; ++k) mask[k] = -(k < count);
  return mask;
}

// Out of line, so that what it returns needs no memory.
static __attribute__((noinline)) arl_bits load_some(const uint32_t *from, int64_t count) {
  arl_bits bits = {0};
  if (count > 0) memcpy(&bits, from, (size_t)count * sizeof *from);
  return bits;
}

// The sign bits of all lanes, lane k's in bit k.
ARL_INLINE uint32_t signs(arl_bits x) {
#if ARL_VECTOR_BYTES == 64 && defined(__AVX512DQ__)
  return _mm512_movepi32_mask((__m512i)x);
#elif ARL_VECTOR_BYTES == 32 && defined(__AVX2__)
  return (uint32_t)_mm256_movemask_ps((__m256)x);
#elif ARL_VECTOR_BYTES == 16 && defined(__SSE2__)
  return (uint32_t)_mm_movemask_ps((__m128)x);
#else
  uint32_t all = 0;
  for (unsigned k = 0; k < LANES; ++k) all |= x[k] >> 31 << k;
  return all;
#endif
}

ARL_INLINE arl_value gather(const arl_entry *values, arl_bits index) {
#if ARL_VECTOR_BYTES == 64 && defined(__AVX512F__)
  return (arl_value)_mm512_i32gather_epi32((__m512i)index, values, sizeof *values);
#elif ARL_VECTOR_BYTES == 32 && defined(__AVX2__)
  return (arl_value)_mm256_i32gather_epi32((const int *)values, (__m256i)index, sizeof *values);
#else
  arl_value found;
  for (unsigned k = 0; k < LANES; ++k) found[k] = values[index[k]];
  return found;
#endif
}

ARL_INLINE arl_bits draw(arl_bits *states) {
  return *states = *states * arl_lcg_factor + arl_lcg_offset;
}

static void store_run(const lanes_t *lanes, const places_t *places, int64_t lane) {
  const int64_t at = lane * (int64_t)sizeof(arl_entry), slot = places->slots[lane];
  memcpy(places->runs + slot, (const char *)&lanes->q + at, sizeof(arl_entry));
  if (places->has_second)
    memcpy(places->runs + places->num_slots + slot, (const char *)&lanes->second + at,
           sizeof(arl_entry));
}

// Begin the run of `slot`.
static int load_run(lanes_t *lanes, places_t *places, int64_t lane, uint32_t slot) {
  const int64_t at = lane * (int64_t)sizeof(arl_entry);
  if (slot >= places->num_slots) return ARL_BAD_SLOT;
  places->slots[lane] = slot;
  memcpy((char *)&lanes->q + at, places->starts + slot, sizeof(arl_entry));
  if (places->has_second)
    memcpy((char *)&lanes->second + at, places->starts + places->num_slots + slot,
           sizeof(arl_entry));
  return 0;
}

// Begin the next run of each lane whose bit is set. Runs are long, so this is rare; out of line it
// leaves the lanes in registers everywhere else.
static __attribute__((noinline)) int next_runs(lanes_t *lanes, places_t *places, uint32_t bits) {
  int fault = 0;
  for (; bits && !fault; bits &= bits - 1) {
    const int64_t lane = __builtin_ctz(bits);
    store_run(lanes, places, lane);
    fault = load_run(lanes, places, lane, places->slots[lane] + 1);
  }
  return fault;
}

// One row of each lane, of which the first `count` have one.
ARL_INLINE void step(const rule_t *rule, arl_bits index, arl_value reward, int64_t count,
                     lanes_t *lanes) {
  arl_mask learns_second = {0};
  if (rule->choice != ARL_NOTHING_DRAWN) {
    const arl_bits u = draw(&lanes->draws), v = draw(&lanes->draws);
    if (rule->choice == ARL_DRAWN_TABLE) {
      learns_second = (arl_mask)u < 0;
      index += u >> 31;
    } else {
      const arl_bits column = ((v >> 16) * rule->actions >> 16) + 1;
      index += (arl_bits)(u >> 16 < rule->explore) & column;
    }
  }
  // Whatever the records hold, nothing outside of the values is read.
  const arl_mask inside = (arl_mask)(index < rule->num_values);
  lanes->inside &= inside;
  const arl_value next = gather(rule->values, index & (arl_bits)inside);
  const bool has_second = rule->choice == ARL_DRAWN_TABLE;
  const arl_value own = has_second ? arl_select(learns_second, lanes->second, lanes->q) : lanes->q;
  arl_value moved = arl_move(own, arl_add(reward, next), rule->alpha);
  if (count < LANES) moved = arl_select(first_lanes(count), moved, own);
  if (has_second) lanes->second = arl_select(learns_second, moved, lanes->second);
  lanes->q = has_second ? arl_select(learns_second, lanes->q, moved) : moved;
}

// Rows t ... last - 1 of the first `count` lanes; `record` is row 0 of the first of them.
ARL_INLINE int take_rows(const rule_t *rule, const uint32_t *record, int64_t stride, int64_t t,
                         int64_t last, int64_t count, lanes_t *state, places_t *places) {
  lanes_t lanes = *state;  // a copy without an address stays in registers
  for (; t < last; ++t) {
    const uint32_t *at = record + 2 * t * stride;
    arl_bits index, reward;
    if (count == LANES) {
      memcpy(&index, at, sizeof index);
      memcpy(&reward, at + stride, sizeof reward);
    } else {
      index = load_some(at, count);
      reward = load_some(at + stride, count);
    }
    const uint32_t begins = signs(index);
    if (__builtin_expect(begins && t > 0, 0)) {
      *state = lanes;
      if (next_runs(state, places, begins)) return ARL_BAD_SLOT;
      lanes = *state;
    }
    step(rule, index & ~arl_first_of_run, (arl_value)reward, count, &lanes);
  }
  *state = lanes;
  return 0;
}

// Rows of lanes on their way into the order RAN: row t's words of lane k are at 2 t `stride` + k
// and (2 t + 1) `stride` + k of `from`; `to` is the same with LANES in place of `stride`.
typedef struct {
  const uint32_t *from;
  int64_t stride;
  uint32_t *to;
  int64_t begin[LANES];   // of the present run
  uint32_t draws[LANES];  // the states of the lanes' streams
} rotation_t;

// Copy a lane's run, rows begin ... end - 1, from a drawn row on and then those before it.
static void rotate_run(rotation_t *at, int64_t lane, int64_t end) {
  const int64_t begin = at->begin[lane], rows = end - begin;
  const int64_t skipped = arl_below_large(arl_draw(at->draws + lane), (uint32_t)rows);
  const int64_t parts[2][2] = {{begin + skipped, end}, {begin, begin + skipped}};
  uint32_t *to = at->to + 2 * begin * LANES + lane, *const first = to;
  for (int part = 0; part < 2; ++part) {
    const uint32_t *from = at->from + 2 * parts[part][0] * at->stride + lane;
    for (int64_t t = parts[part][0]; t < parts[part][1]; ++t) {
      to[0] = from[0] & ~arl_first_of_run;
      to[LANES] = from[at->stride];
      to += 2 * LANES;
      from += 2 * at->stride;
    }
  }
  *first |= arl_first_of_run;
  at->begin[lane] = end;
}

// The rows of the first `wide` lanes, `longer` of which have one row more, in the order RAN.
static void rotate_rows(rotation_t *at, int64_t wide, int64_t rows, int64_t longer) {
  for (int64_t t = 1; t < rows + (longer > 0); ++t) {
    const arl_bits index = load_some(at->from + 2 * t * at->stride, t < rows ? wide : longer);
    for (uint32_t bits = signs(index); bits; bits &= bits - 1)
      rotate_run(at, __builtin_ctz(bits), t);
  }
  for (int64_t lane = 0; lane < wide; ++lane)
    if (rows + (lane < longer) > 0) rotate_run(at, lane, rows + (lane < longer));
}

// One pass of lanes first, first + 1, ... of a chunk, as many as there are and a vector holds.
// RAN puts their rows into `scratch`, [T][2][LANES].
ARL_INLINE int sweep(const arl_owned *launch, const rule_t *rule, int64_t chunk, uint32_t pass,
                     int64_t first, uint32_t *scratch, places_t *places) {
  const int64_t all = launch->lanes, length = launch->lengths[chunk], rows = length / all;
  const int64_t wide = least(all - first, LANES);
  const int64_t longer = least(length % all - first, wide);  // lanes with one row more
  const int64_t used = rows > 0 ? wide : longer;
  const int32_t *slots = launch->first_slots + chunk * all + first;
  const uint32_t *record = launch->records + chunk * launch->rows * 2 * all + first;
  int64_t stride = all;
  const uint32_t stream = launch->dpus[chunk] * (uint32_t)all + (uint32_t)first;
  lanes_t lanes = {.inside = first_lanes(LANES)};
  for (int64_t lane = 0; lane < used; ++lane)
    if (load_run(&lanes, places, lane, (uint32_t)slots[lane])) return ARL_BAD_SLOT;
  if (rule->choice != ARL_NOTHING_DRAWN)
    for (unsigned k = 0; k < LANES; ++k)
      lanes.draws[k] = arl_stream(launch->seed, pass, stream + k, ARL_ACTION_STREAM);
  if (launch->rotates) {
    rotation_t rotation = {.from = record, .stride = stride, .to = scratch};
    for (unsigned k = 0; k < LANES; ++k)
      rotation.draws[k] = arl_stream(launch->seed, pass, stream + k, ARL_ORDER_STREAM);
    rotate_rows(&rotation, wide, rows, longer);
    record = scratch;
    stride = LANES;
  }
  int64_t t = 0;
  if (wide == LANES) {
    if (take_rows(rule, record, stride, 0, rows, LANES, &lanes, places)) return ARL_BAD_SLOT;
    t = rows;
  }
  for (; t < rows + (longer > 0); ++t)
    if (take_rows(rule, record, stride, t, t + 1, t < rows ? wide : longer, &lanes, places))
      return ARL_BAD_SLOT;
  for (int64_t lane = 0; lane < used; ++lane) store_run(&lanes, places, lane);
  return signs(~(arl_bits)lanes.inside) ? ARL_BAD_INDEX : 0;
}

static int run_item(const arl_owned *launch, int64_t item, uint32_t *scratch) {
  const int64_t replica = item % launch->replicas, chunk = item / launch->replicas;
  const bool has_second = launch->choice == ARL_DRAWN_TABLE;
  const int64_t size = (1 + has_second) * launch->slots;
  const int64_t at = (replica * launch->chunks + chunk) * size;
  arl_entry *runs = (arl_entry *)launch->runs + at;
  rule_t rule = {
      .actions = launch->actions,
      .explore = launch->explore,
      .values = (const arl_entry *)launch->next_values + replica * launch->values,
      .num_values = (uint32_t)launch->values,
      .alpha = arl_splat(((const arl_entry *)launch->alpha)[replica]),
  };
  places_t places = {.starts = (const arl_entry *)launch->starts + at,
                     .runs = runs,
                     .num_slots = launch->slots,
                     .has_second = has_second};
  int fault = 0;
  memset(runs, 0, (size_t)size * sizeof *runs);
  for (uint32_t k = 0; k < launch->num_passes && !fault; ++k, places.starts = runs)
    for (int64_t first = 0; first < launch->lanes && !fault; first += LANES)
      switch (launch->choice) {  // compiled anew for each, as a constant in the loops over rows
#define CHOICE(NAME)                                                                      \
  case NAME:                                                                              \
    rule.choice = NAME;                                                                   \
    fault = sweep(launch, &rule, chunk, launch->first_pass + k, first, scratch, &places); \
    break;
        CHOICE(ARL_NOTHING_DRAWN)
        CHOICE(ARL_DRAWN_ACTION)
        CHOICE(ARL_DRAWN_TABLE)
#undef CHOICE
        default:
          break;
      }
  return fault;
}

arl_owned_run ARL_RUN;

int ARL_RUN(const arl_owned *launch, int64_t first, int64_t last) {
  uint32_t *scratch = NULL;
  if (launch->rotates) {
    scratch = malloc(((size_t)launch->rows + 1) * 2 * LANES * sizeof *scratch);
    if (!scratch) return ARL_NO_MEMORY;
  }
  int fault = 0;
  for (int64_t item = first; item < last && !fault; ++item) fault = run_item(launch, item, scratch);
  free(scratch);
  return fault;
}
