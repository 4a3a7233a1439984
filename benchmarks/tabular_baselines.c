// Q-learning over logged rows in plain C: what the passes of accel_rl are measured against.
//
// Compiled once for each arithmetic, number of actions and target block, so that the compiler knows
// all three: -DFP32, -DINT32_SCALED or -DINT32_POW2; -DACTIONS=A; -DBLOCK=B.
// Rows, tables and arithmetic are those of accel_rl.tabular (rows.py, numerics.py). Products go
// through 64 bits here, which is faster in C and gives the same values.

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int32_t entry;       // s * A + a
  int32_t next_entry;  // s' * A
  int32_t reward;      // the bits of a table entry
  int32_t meta;        // bit BOOTSTRAP: the row bootstraps
} row_t;

enum { BOOTSTRAP = 16 };

#if defined(FP32)

typedef float value_t;
typedef double sum_t;

static inline value_t multiply(value_t c, value_t x) { return c * x; }
static inline value_t add(value_t x, value_t y) { return x + y; }
static inline value_t subtract(value_t x, value_t y) { return x - y; }
static inline value_t divide_sum(sum_t sum, int count) { return (value_t)(sum / count); }

#else

typedef int32_t value_t;
typedef int64_t sum_t;

static inline value_t divide_sum(sum_t sum, int count) {  // half away from zero
  return (value_t)((sum + (sum < 0 ? -(count / 2) : count / 2)) / count);
}

#if defined(INT32_SCALED)

enum { SCALE = 10000 };

static inline value_t multiply(value_t c, value_t x) { return (value_t)((int64_t)c * x / SCALE); }
static inline value_t add(value_t x, value_t y) { return x + y; }
static inline value_t subtract(value_t x, value_t y) { return x - y; }

#elif defined(INT32_POW2)

static inline value_t multiply(value_t c, value_t x) {  // c * x / 256, half away from zero
  int64_t product = (int64_t)c * x;
  return (value_t)((product + 128 + (product >> 63)) >> 8);
}

// Sums and differences of x saturate at +-INT32_MAX.
static inline value_t saturate(value_t x, value_t total, int overflow) {
  if (__builtin_expect(overflow, 0)) return x < 0 ? -INT32_MAX : INT32_MAX;
  return total < -INT32_MAX ? -INT32_MAX : total;
}

static inline value_t add(value_t x, value_t y) {
  value_t total;
  int overflow = __builtin_add_overflow(x, y, &total);
  return saturate(x, total, overflow);
}

static inline value_t subtract(value_t x, value_t y) {
  value_t difference;
  int overflow = __builtin_sub_overflow(x, y, &difference);
  return saturate(x, difference, overflow);
}

#else
#error "define FP32, INT32_SCALED or INT32_POW2"
#endif
#endif

static inline value_t reward_of(const row_t *row) {
  value_t reward;
  memcpy(&reward, &row->reward, sizeof reward);
  return reward;
}

// The discount of a row that ends an episode and of one that does not: looked up, because a branch
// on it is mispredicted and costs a third of the speed on FrozenLake.
typedef struct {
  value_t of[2];
} discounts_t;

static inline value_t discount_of(const row_t *row, const discounts_t *discounts) {
  return discounts->of[row->meta >> BOOTSTRAP & 1];
}

static inline value_t target_of(const row_t *row, const value_t *q, const discounts_t *discounts) {
  const value_t *next = q + row->next_entry;
  value_t best = next[0];
  for (int a = 1; a < ACTIONS; ++a) best = next[a] > best ? next[a] : best;
  return add(reward_of(row), multiply(discount_of(row, discounts), best));
}

static inline void move(value_t *entry, value_t target, value_t alpha) {
  *entry = add(*entry, multiply(alpha, subtract(target, *entry)));
}

// All rows once into one table, BLOCK targets at a time.
static void sweep(const row_t *rows, int64_t count, value_t *q, value_t alpha, value_t gamma) {
  const discounts_t discounts = {{0, gamma}};
#if BLOCK == 1
  for (int64_t t = 0; t < count; ++t)
    move(q + rows[t].entry, target_of(rows + t, q, &discounts), alpha);
#else
  value_t targets[BLOCK];
  for (int64_t start = 0; start < count; start += BLOCK) {
    const row_t *block = rows + start;
    int64_t size = count - start < BLOCK ? count - start : BLOCK;
    for (int64_t k = 0; k < size; ++k) targets[k] = target_of(block + k, q, &discounts);
    for (int64_t k = 0; k < size; ++k) move(q + block[k].entry, targets[k], alpha);
  }
#endif
}

// One pass over every chunk, for each step size in turn: rows [D][T], tables [R][D][E]. With
// `prefetch`, all of a chunk's table is asked for before its first row.
void sequential(const row_t *rows, const int32_t *lengths, int64_t chunks, int64_t capacity,
                value_t *tables, int64_t entries, const value_t *alphas, int64_t replicas,
                value_t gamma, int prefetch) {
  for (int64_t r = 0; r < replicas; ++r)
    for (int64_t d = 0; d < chunks; ++d) {
      value_t *q = tables + (r * chunks + d) * entries;
      for (int64_t e = 0; prefetch && e < entries; e += 64 / sizeof(value_t))
        __builtin_prefetch(q + e, 1);
      sweep(rows + d * capacity, lengths[d], q, alphas[r], gamma);
    }
}

// The same with LANES step sizes side by side, for the compiler to vectorise: rows [D][T], tables
// [R / LANES][D][E][LANES].
enum { LANES = 64 };

static inline void target_lanes(const row_t *row, const value_t *q, const discounts_t *discounts,
                                value_t *restrict targets) {
  const value_t *next = q + (int64_t)row->next_entry * LANES;
  value_t reward = reward_of(row), discount = discount_of(row, discounts);
  for (int lane = 0; lane < LANES; ++lane) {
    value_t best = next[lane];
    for (int a = 1; a < ACTIONS; ++a) {
      value_t value = next[a * LANES + lane];
      best = value > best ? value : best;
    }
    targets[lane] = add(reward, multiply(discount, best));
  }
}

static inline void move_lanes(value_t *restrict entry, const value_t *restrict targets,
                              const value_t *restrict alphas) {
  for (int lane = 0; lane < LANES; ++lane) move(entry + lane, targets[lane], alphas[lane]);
}

static void sweep_lanes(const row_t *rows, int64_t count, value_t *q, const value_t *alphas,
                        value_t gamma) {
  const discounts_t discounts = {{0, gamma}};
  value_t targets[BLOCK][LANES];
  for (int64_t start = 0; start < count; start += BLOCK) {
    const row_t *block = rows + start;
    int64_t size = count - start < BLOCK ? count - start : BLOCK;
    for (int64_t k = 0; k < size; ++k) target_lanes(block + k, q, &discounts, targets[k]);
    for (int64_t k = 0; k < size; ++k)
      move_lanes(q + (int64_t)block[k].entry * LANES, targets[k], alphas);
  }
}

void lanes(const row_t *rows, const int32_t *lengths, int64_t chunks, int64_t capacity,
           value_t *tables, int64_t entries, const value_t *alphas, int64_t replicas,
           value_t gamma) {
  for (int64_t tile = 0; tile < replicas / LANES; ++tile)
    for (int64_t d = 0; d < chunks; ++d)
      sweep_lanes(rows + d * capacity, lengths[d],
                  tables + (tile * chunks + d) * entries * LANES, alphas + tile * LANES, gamma);
}

// One log shared by threads: each sweeps an equal contiguous part into the table it is given.
typedef struct {
  const row_t *rows;
  int64_t count;
  value_t *q;
  value_t alpha, gamma;
} part_t;

static void *sweep_part(void *argument) {
  const part_t *part = argument;
  sweep(part->rows, part->count, part->q, part->alpha, part->gamma);
  return NULL;
}

// Tables of consecutive threads lie `stride` entries apart; 0: all share one.
static int sweep_threads(const row_t *rows, int64_t count, value_t *tables, int64_t stride,
                         value_t alpha, value_t gamma, int threads) {
  pthread_t handles[threads];
  part_t parts[threads];
  int started = 0;
  for (; started < threads; ++started) {
    int64_t from = count * started / threads, to = count * (started + 1) / threads;
    parts[started] = (part_t){rows + from, to - from, tables + started * stride, alpha, gamma};
    if (pthread_create(handles + started, NULL, sweep_part, parts + started)) break;
  }
  for (int k = 0; k < started; ++k) pthread_join(handles[k], NULL);
  return started == threads ? 0 : -1;
}

// Threads race on one table (as SwiftRL's first CPU version is remembered): an update may be lost.
// Returns 0, or -1 where a thread could not start.
int shared_table(const row_t *rows, int64_t count, value_t *q, value_t alpha, value_t gamma,
                 int threads) {
  return sweep_threads(rows, count, q, 0, alpha, gamma, threads);
}

// Threads with a table each, started from q and averaged into it at the end (as SwiftRL's second CPU
// version is remembered). Returns 0, or -1 where a thread could not start or memory is short.
int private_tables(const row_t *rows, int64_t count, value_t *q, int64_t entries, value_t alpha,
                   value_t gamma, int threads) {
  int64_t stride = entries + 128 / sizeof(value_t);  // no cache line is shared
  value_t *tables = malloc(threads * stride * sizeof(value_t));
  if (!tables) return -1;
  for (int k = 0; k < threads; ++k) memcpy(tables + k * stride, q, entries * sizeof(value_t));
  int status = sweep_threads(rows, count, tables, stride, alpha, gamma, threads);
  for (int64_t e = 0; status == 0 && e < entries; ++e) {
    sum_t sum = 0;
    for (int k = 0; k < threads; ++k) sum += tables[k * stride + e];
    q[e] = divide_sum(sum, threads);
  }
  free(tables);
  return status;
}
