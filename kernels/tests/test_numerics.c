// Every operation of numerics.h against its definition in 64 bits, for one numerics and one kind of
// value; vectors hold a different case in each lane.

#include <math.h>
#include <string.h>

#include "check.h"

#ifdef ARL_SHIFT_AND_ADD
// How often it was asked of a variable: constants are to be known as such in every build.
static int64_t variables;
#define __builtin_constant_p(c) (__builtin_constant_p(c) || (++variables, 0))
#undef ARL_INLINE
#endif
#include "numerics.h"

enum { LANES = sizeof(arl_value) / sizeof(arl_entry), MOST_LANES = 16, RANDOM_CASES = 1 << 16 };

typedef enum { ADD, SUBTRACT, MULTIPLY } operation;

static uint64_t state = 0x5EED5EED5EEDull;

static arl_value apply(operation op, arl_value x, arl_value y) {
  if (op == ADD) return arl_add(x, y);
  return op == SUBTRACT ? arl_subtract(x, y) : arl_multiply(x, y);
}

#if ARL_NUMERICS == ARL_FP32

typedef uint32_t bits_t;

static bits_t bits_of(float x) {
  bits_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static bool is_same(float x, float y) { return (x != x && y != y) || bits_of(x) == bits_of(y); }

static bool is_right(operation op, arl_entry x, arl_entry y, arl_entry got) {
  volatile float want = op == ADD ? x + y : op == SUBTRACT ? x - y : x * y;
  return is_same(got, want);
}

static bool is_mean(const arl_entry *values, uint32_t count, arl_entry got) {
  volatile float total = values[0], part = (float)(1.0 / count);
  for (uint32_t k = 1; k < count; ++k) total = total + values[k];
  total = total * part;
  return is_same(got, total);
}

static arl_entry random_entry(void) {
  const bits_t bits = (bits_t)random_bits(&state);
  arl_entry entry;
  memcpy(&entry, &bits, sizeof entry);  // any: infinite, subnormal, not a number
  if (random_bits(&state) % 2) entry = (float)random_between(&state, -1000, 1000) / 64;
  return entry;
}

static arl_entry random_rate(void) { return random_entry(); }

static const uint32_t counts[] = {1, 2, 3, 4, 5, 6, 7, 16, 255, 1000, 65536};

#else

// Remainders of a mean, each below its count, add up to at most count * (count - 1).
static const uint32_t counts[] = {1, 2, 3, 4, 5, 6, 7, 16, 255, 1000, 46341};

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

#if ARL_NUMERICS == ARL_INT32_SCALED

enum { ONE = 10000 };
static const int64_t LEAST = INT32_MIN;

// Sums wrap.
static bool is_sum(int64_t sum, int64_t got) { return (got - sum) % (INT64_C(1) << 32) == 0; }

// got is x / n rounded toward zero.
static bool is_quotient(int64_t x, int64_t n, int64_t got) {
  const int64_t rest = x - got * n;
  return magnitude(rest) < n && (rest == 0 || (rest > 0) == (x > 0));
}

#else

enum { ONE = 256 };
static const int64_t LEAST = -INT32_MAX;

// Sums are limited.
static bool is_sum(int64_t sum, int64_t got) {
  if (sum > INT32_MAX) return got == INT32_MAX;
  return got == (sum < LEAST ? LEAST : sum);
}

// got is x / n rounded to the nearest, halves away from zero.
static bool is_quotient(int64_t x, int64_t n, int64_t got) {
  const int64_t rest = x - got * n;
  return 2 * magnitude(rest) < n || (2 * magnitude(rest) == n && (rest > 0) != (x > 0));
}

#endif

static bool is_right(operation op, arl_entry x, arl_entry y, arl_entry got) {
  if (op == MULTIPLY) return is_quotient((int64_t)x * y, ONE, got);
  return is_sum(op == ADD ? (int64_t)x + y : (int64_t)x - y, got);
}

// The sum of all that divides evenly, and of what remains divided once: within one of the mean.
static bool is_mean(const arl_entry *values, uint32_t count, arl_entry got) {
  int64_t total = 0, rest = 0;
  for (uint32_t k = 0; k < count; ++k) {
    const int64_t left = magnitude(values[k]) % count;
    total += values[k];
    rest += values[k] < 0 ? -left : left;
  }
  return is_quotient(rest, count, got - (total - rest) / count) &&
         magnitude(total - (int64_t)got * count) < count;
}

static arl_entry random_entry(void) {
  const int64_t shift = random_between(&state, 0, 31), most = INT64_C(1) << shift;
  const int64_t entry = random_between(&state, -most, most);
  return (arl_entry)(entry > INT32_MAX ? INT32_MAX : entry < LEAST ? LEAST : entry);
}

static arl_entry random_rate(void) { return (arl_entry)random_between(&state, 0, ONE); }

#endif

// Pending cases, one for each lane.
static arl_entry left[MOST_LANES], right[MOST_LANES];
static int pending;

static void flush(operation op) {
  arl_value x, y;
  arl_entry got[LANES];
  if (pending == 0) return;
  for (int lane = pending; lane < LANES; ++lane) {
    left[lane] = left[0];
    right[lane] = right[0];
  }
  memcpy(&x, left, sizeof x);
  memcpy(&y, right, sizeof y);
  const arl_value result = apply(op, x, y);
  memcpy(got, &result, sizeof got);
  for (int lane = 0; lane < pending; ++lane)
    CHECK(is_right(op, left[lane], right[lane], got[lane]), "operation %d of %.9g and %.9g: %.9g",
          (int)op, (double)left[lane], (double)right[lane], (double)got[lane]);
  pending = 0;
}

static void try(operation op, arl_entry x, arl_entry y) {
  left[pending] = x;
  right[pending] = y;
  if (++pending == LANES) flush(op);
}

static void test_operation(operation op, const arl_entry *edges, int num_edges,
                           const arl_entry *others, int num_others) {
  for (int i = 0; i < num_others; ++i)
    for (int j = 0; j < num_edges; ++j) try(op, others[i], edges[j]);
  for (int k = 0; k < RANDOM_CASES; ++k)
    try(op, op == MULTIPLY ? random_rate() : random_entry(), random_entry());
  flush(op);
}

// What a column holds: extremes, the largest remainders, edges and random entries by turns.
static arl_entry column_entry(int round, uint32_t lane, uint32_t count, const arl_entry *edges,
                              int num_edges) {
  const arl_entry remainder = (arl_entry)(count - 1);
  if (round == 0) return edges[num_edges - 1 - lane % 2];
  if (round == 1) return lane % 2 ? -remainder : remainder;
  return round % 2 ? random_entry() : edges[random_between(&state, 0, num_edges - 1)];
}

// Means over columns of `stride` values, whose other values must not matter.
static void test_mean(uint32_t count, uint32_t stride, const arl_entry *edges, int num_edges) {
  arl_entry *columns = must_allocate(LANES * count * sizeof *columns), got[LANES];
  arl_value *values = aligned_alloc(64, (count * stride * sizeof *values + 63) / 64 * 64);
  if (!values) abort();
  for (int round = 0; round < 20; ++round) {
    memset(values, 0x3C, count * stride * sizeof *values);
    for (uint32_t k = 0; k < count; ++k)
      for (uint32_t lane = 0; lane < LANES; ++lane) {
        const arl_entry entry = column_entry(round, lane, count, edges, num_edges);
        columns[lane * count + k] = entry;
        memcpy((arl_entry *)(values + k * stride) + lane, &entry, sizeof entry);
      }
    const arl_value mean = arl_mean(values, count, stride);
    memcpy(got, &mean, sizeof got);
    for (uint32_t lane = 0; lane < LANES; ++lane)
      CHECK(is_mean(columns + lane * count, count, got[lane]),
            "round %d, %u values from %.9g: %.9g", round, count, (double)columns[lane * count],
            (double)got[lane]);
  }
  free(columns);
  free(values);
}

#ifdef ARL_SHIFT_AND_ADD

#if ARL_NUMERICS == ARL_INT32_SCALED
// clang-format off: a list
#define CONSTANTS(X)                                                                          \
  X(0) X(1) X(2) X(3) X(5) X(7) X(100) X(500) X(999) X(1000) X(2500) X(5000) X(5461) X(8191) \
  X(8192) X(9000) X(9500) X(9900) X(9999) X(10000)
// clang-format on
#else
#define FOUR(X, c) X(c) X((c) + 1) X((c) + 2) X((c) + 3)
#define SIXTEEN(X, c) FOUR(X, c) FOUR(X, (c) + 4) FOUR(X, (c) + 8) FOUR(X, (c) + 12)
#define SIXTY_FOUR(X, c) \
  SIXTEEN(X, c) SIXTEEN(X, (c) + 16) SIXTEEN(X, (c) + 32) SIXTEEN(X, (c) + 48)
#define CONSTANTS(X) SIXTY_FOUR(X, 0) SIXTY_FOUR(X, 64) SIXTY_FOUR(X, 128) SIXTY_FOUR(X, 192) X(256)
#endif

// c * x, as a program computes it whose rate is the constant c.
static arl_entry multiply_by_constant(arl_entry c, arl_entry x) {
  switch (c) {
#define CASE(c) \
  case c:       \
    return arl_multiply(c, x);
    CONSTANTS(CASE)
#undef CASE
    default:
      abort();
  }
}

static void test_constant(arl_entry c, int64_t x) {
  if (x < LEAST || x > INT32_MAX) return;
  const int64_t before = variables;
  const arl_entry got = multiply_by_constant(c, (arl_entry)x);
  CHECK(is_right(MULTIPLY, c, (arl_entry)x, got), "%d times %d: %d", (int)c, (int)x, (int)got);
  CHECK(variables == before, "%d was not known as a constant", (int)c);
}

static void test_constants(const arl_entry *edges, int num_edges) {
#define ENTRY(c) c,
  static const arl_entry constants[] = {CONSTANTS(ENTRY)};
#undef ENTRY
  volatile arl_entry one = 1;
  CHECK(arl_multiply(one, ONE) == 1 && variables == 2, "asked %d times", (int)variables);
  for (size_t k = 0; k < sizeof constants / sizeof *constants; ++k) {
    const arl_entry c = constants[k];
    for (int i = 0; i < num_edges; ++i) test_constant(c, edges[i]);
    for (int i = 0; i < RANDOM_CASES / 16; ++i) test_constant(c, random_entry());
    // Where products reach 31 and 32 bits, by this constant and by the largest.
    const int64_t factor = c > 0 ? c : ONE, limits[] = {INT32_MAX - 128, INT32_MAX, UINT32_MAX};
    for (int i = 0; i < 6; ++i)
      for (int64_t near = -9; near <= 9; ++near)
        for (int sign = -1; sign <= 1; sign += 2)
          test_constant(c, sign * (limits[i % 3] / (i < 3 ? factor : ONE) + near));
  }
}

#endif

int main(void) {
#if ARL_NUMERICS == ARL_FP32
  static const float magnitudes[] = {0,         0.1f,      0.99f,          1,        3e38f, 0x1p24f,
                                     0x1p-126f, 0x1p-149f, 0x1.fffffep-1f, INFINITY, NAN};
  enum { MAGNITUDES = sizeof magnitudes / sizeof *magnitudes };
  arl_entry edges[2 * MAGNITUDES];
  for (int k = 0; k < 2 * MAGNITUDES; ++k) edges[k] = magnitudes[k / 2] * (k % 2 ? -1.0f : 1.0f);
  const int num_edges = 2 * MAGNITUDES, num_rates = num_edges;
  const arl_entry *rates = edges;
#else
  static arl_entry edges[1024], rates[ONE + 1];
  int num_edges = 0, num_rates = 0;
  const int64_t centres[] = {0,         128,       256,       5000,      10000,
                             20000,     32768,     65536,     1 << 23,   1 << 24,
                             1 << 30,   214740000, 214748364, INT32_MAX, INT32_MAX - 3647,
                             2147483392};
  for (size_t c = 0; c < sizeof centres / sizeof *centres; ++c)
    for (int64_t near = -9; near <= 9; ++near)
      for (int sign = -1; sign <= 1; sign += 2) {
        const int64_t edge = sign * (centres[c] + near);
        if (edge >= LEAST && edge <= INT32_MAX) edges[num_edges++] = (arl_entry)edge;
      }
  edges[num_edges++] = (arl_entry)LEAST;
  edges[num_edges++] = INT32_MAX;
  for (int64_t rate = 0; rate <= ONE; rate += ONE == 256 || rate < 4 || rate > ONE - 41 ? 1 : 37)
    rates[num_rates++] = (arl_entry)rate;
  CHECK(rates[num_rates - 1] == ONE, "the last rate is %d", (int)rates[num_rates - 1]);
#endif
#ifdef ARL_SHIFT_AND_ADD
  test_constants(edges, num_edges);
#endif
  test_operation(ADD, edges, num_edges, edges, num_edges);
  test_operation(SUBTRACT, edges, num_edges, edges, num_edges);
  test_operation(MULTIPLY, edges, num_edges, rates, num_rates);
  for (size_t k = 0; k < sizeof counts / sizeof *counts; ++k)
    for (uint32_t stride = 1; stride <= 3; stride += 2)
      test_mean(counts[k], stride, edges, num_edges);
  return finish();
}
