// The generator against its definition in 64 bits, and against values pinned once and for all.

#define ARL_NUMERICS ARL_FP32  // the generator does not depend on it
#include "check.h"
#include "random.h"
#include "truth.h"

static const uint32_t edges[] = {
    0,          1,          2,          127,        128,        255,        256,
    65534,      65535,      65536,      65537,      1000000,    0x7FFFFFFE, 0x7FFFFFFF,
    0x80000000, 0x80000001, 0x9E3779B9, 0xFFFF0000, 0xFFFF0001, 0xFFFFFFFE, 0xFFFFFFFF};
enum { EDGES = sizeof edges / sizeof *edges, ROUNDS = 200000 };

static void test_streams(uint32_t x, uint32_t y) {
  CHECK(arl_hash(x) == truth_hash(x), "x = %u", x);
  CHECK(arl_stream(x, y, ~x, 1) == truth_stream(x, y, ~x, 1), "of %u, %u", x, y);
  CHECK(arl_stream(y, ~y, x, 2) == truth_stream(y, ~y, x, 2), "of %u, %u", x, y);
  uint32_t state = x, expected = x;
  for (int k = 0; k < 3; ++k) {
    const uint32_t draw = arl_draw(&state), want = truth_draw(&expected);
    CHECK(draw == want && state == want, "draw %d after %u: %u, state %u", k, x, draw, state);
  }
}

static void test_below(uint32_t draw, uint32_t n) {
  const uint32_t small = n % 65536 + 1, below = arl_below(draw, small);
  CHECK(below == (uint64_t)(draw >> 16) * small / 65536, "draw %u, n %u: %u", draw, small, below);
  const uint32_t large = arl_below_large(draw, n);
  CHECK(large == (uint64_t)draw * n / (UINT64_C(1) << 32), "draw %u, n %u: %u", draw, n, large);
}

// Jumps against that many single draws.
static void test_jumps(uint32_t start) {
  static const uint32_t lengths[] = {0, 1, 2, 255, 256, 100003};
  uint32_t state = start, drawn = 0;
  for (int k = 0; k < 6; ++k) {
    for (; drawn < lengths[k]; ++drawn) truth_draw(&state);
    const uint32_t jumped = arl_jump(start, drawn);
    CHECK(jumped == state, "%u draws after %u: %u, not %u", drawn, start, jumped, state);
  }
}

// Two jumps make one, modulo the period of 2^32, which a last draw closes.
static void test_period(uint32_t start, uint32_t first, uint32_t second) {
  const uint32_t once = arl_jump(start, first + second);
  const uint32_t twice = arl_jump(arl_jump(start, first), second);
  CHECK(twice == once, "%u and %u draws after %u: %u, not %u", first, second, start, twice, once);
  uint32_t state = arl_jump(start, 0xFFFFFFFF);
  CHECK(truth_draw(&state) == start, "2^32 draws after %u: %u", start, state);
}

static void test_pinned(void) {
  CHECK(
      arl_hash(0) == 0x92CA2F0E && arl_hash(1) == 0x96A0F96B && arl_hash(0xFFFFFFFF) == 0x36DEB503,
      "hash(0) is %x", arl_hash(0));
  uint32_t state = arl_stream(1, 2, 3, ARL_ACTION_STREAM);
  CHECK(state == 0x18CAF549, "stream(1, 2, 3, 2) is %x", state);
  const uint32_t first = arl_draw(&state), second = arl_draw(&state);
  CHECK(first == 0x50997E14 && second == 0xCC6A5263, "draws %x and %x", first, second);
  CHECK(arl_stream(0, 0, 0, ARL_ORDER_STREAM) == 0x73B4946B, "stream(0, 0, 0, 1)");
}

int main(void) {
  uint64_t state = 0xD1CEull;
  for (int i = 0; i < EDGES; ++i) {
    test_jumps(edges[i]);
    for (int j = 0; j < EDGES; ++j) {
      test_streams(edges[i], edges[j]);
      test_below(edges[i], edges[j]);
      test_period(edges[i] ^ edges[j], edges[i], edges[j]);
    }
  }
  for (int round = 0; round < ROUNDS; ++round) {
    const uint64_t bits = random_bits(&state);
    test_streams((uint32_t)bits, (uint32_t)(bits >> 32));
    test_below((uint32_t)bits, (uint32_t)(bits >> 32));
    test_below((uint32_t)bits, edges[round % EDGES]);
    test_period(~(uint32_t)bits, (uint32_t)bits, (uint32_t)(bits >> 32));
  }
  test_pinned();
  return finish();
}
