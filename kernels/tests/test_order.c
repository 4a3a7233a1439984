// Orders against a plain writing-out of them, and against what makes them orders.

#include <string.h>

#define ARL_NUMERICS ARL_FP32  // orders do not depend on it
#include "check.h"
#include "order.h"
#include "truth.h"

// All rows of a pass in its order.
static uint32_t *take_all(arl_order order, uint32_t stride, uint32_t length, uint32_t key) {
  uint16_t *blocks = must_allocate(arl_random_blocks(length) * sizeof *blocks);
  uint8_t *within = must_allocate(ARL_RANDOM_BLOCK);
  uint32_t *rows = must_allocate(length * sizeof *rows);
  arl_cursor at = arl_start(order, stride, length, key, blocks, within);
  for (uint32_t t = 0; t < length; ++t) rows[t] = arl_next(order, &at);
  free(blocks);
  free(within);
  return rows;
}

static void compare(arl_order order, uint32_t stride, uint32_t length, uint32_t key) {
  int64_t *want = must_allocate(length * sizeof *want);
  uint32_t *rows = take_all(order, stride, length, key);
  truth_order((int)order, stride, length, key, want);
  for (uint32_t t = 0; t < length; ++t)
    CHECK(rows[t] == want[t], "order %d, stride %u, length %u: row %u is %u, not %lld", (int)order,
          stride, length, t, rows[t], (long long)want[t]);
  free(rows);
  free(want);
}

static void check_permutation(const uint32_t *rows, uint32_t length) {
  uint8_t *seen = must_allocate(length);
  memset(seen, 0, length);
  for (uint32_t t = 0; t < length; ++t) {
    CHECK(rows[t] < length && !seen[rows[t] % length], "row %u comes at %u of %u again", rows[t], t,
          length);
    seen[rows[t] % length] = 1;
  }
  free(seen);
}

// Each block's rows follow one another, in the one order of rows within a block; the short block
// has that order too, less what it lacks.
static void check_blocks(const uint32_t *rows, uint32_t length) {
  const uint32_t last = length / 128, rest = length % 128;
  if (last == 0) return;
  const uint32_t *whole = rows + (rows[0] / 128 == last ? rest : 0);
  for (uint32_t start = 0; start < length;) {
    const uint32_t block = rows[start] / 128, size = block == last ? rest : 128;
    uint32_t at = start;
    for (uint32_t i = 0; i < 128; ++i)
      if (whole[i] % 128 < size) {
        CHECK(rows[at] == block * 128 + whole[i] % 128, "length %u: row %u at %u", length, rows[at],
              at);
        ++at;
      }
    start = at;
  }
}

static void test_length(uint32_t length, uint64_t *state) {
  const uint32_t strides[] = {1, 4, 99, length + 7, 0x7FFFFFFF};
  const uint32_t key = (uint32_t)random_bits(state);
  compare(ARL_SEQ, 4, length, key);
  for (int k = 0; k < 5; ++k) compare(ARL_STR, strides[k], length, key);
  compare(ARL_RAN, 4, length, key);
  compare(ARL_RAN_REPLACEMENT, 4, length, key);
  uint32_t *strided = take_all(ARL_STR, 4, length, key),
           *random = take_all(ARL_RAN, 4, length, key);
  check_permutation(strided, length);
  check_permutation(random, length);
  check_blocks(random, length);
  free(strided);
  free(random);
}

// A chunk of as many blocks as there may be.
static void test_longest(void) {
  const uint32_t length = ARL_MAX_RANDOM_BLOCKS * ARL_RANDOM_BLOCK - 1;
  uint32_t *rows = take_all(ARL_RAN, 4, length, 17);
  check_permutation(rows, length);
  free(rows);
}

// Replacement in a chunk too long to have.
static void test_large_replacement(void) {
  const uint32_t length = 0x7FFFFFFF;
  arl_cursor at = arl_start(ARL_RAN_REPLACEMENT, 4, length, 99, NULL, NULL);
  uint32_t state = 99, top = 0;
  for (int t = 0; t < 1000; ++t) {
    const uint32_t row = arl_next(ARL_RAN_REPLACEMENT, &at);
    CHECK(row == (uint64_t)truth_draw(&state) * length >> 32, "row %u", row);
    top = row > top ? row : top;
  }
  CHECK(top > length / 100 * 98, "no row above %u", top);
}

int main(void) {
  static const uint32_t lengths[] = {1,   2,   3,   5,   97,  98,  99,  100, 126,  127,
                                     128, 129, 130, 255, 256, 257, 384, 999, 1000, 1025};
  uint64_t state = 0x0DDE5ull;
  for (size_t k = 0; k < sizeof lengths / sizeof *lengths; ++k)
    for (int round = 0; round < 5; ++round) test_length(lengths[k], &state);
  test_longest();
  test_large_replacement();
  const uint32_t pinned[] = {255, 244, 248, 175, 187, 134};
  const uint32_t key = truth_stream(5, 6, 7, 1);
  uint32_t *rows = take_all(ARL_RAN, 4, 300, key);
  CHECK(memcmp(rows, pinned, sizeof pinned) == 0, "300 rows start %u, %u", rows[0], rows[1]);
  free(rows);
  rows = take_all(ARL_RAN_REPLACEMENT, 4, 300, key);
  CHECK(rows[0] == 140 && rows[1] == 124 && rows[2] == 288, "300 rows start %u, %u", rows[0],
        rows[1]);
  free(rows);
  return finish();
}
