// The sum tree of prioritised replay: accel_rl/replay/sum_tree.py says what it is. All sums and
// comparisons are those of that file, in its order and in the float mode of XLA's threads, so that
// the bits agree.

#ifndef ACCEL_RL_FFI_SUM_TREE_H
#define ACCEL_RL_FFI_SUM_TREE_H

#include <stdint.h>
#include <string.h>

enum {
  LEAF_ROW = 8,
  ROW_BITS = 3,
  CHUNK = 256,  // items whose nodes are kept at a time
};

typedef struct {
  float sum, peak;  // of the leaves below
} node_t;

typedef struct {
  float *leaves;
  node_t *heap;
  int64_t size;  // leaves
  int32_t rows;  // H, of leaves
  int depth;     // H is 2^depth
} tree_t;

static inline float larger(float a, float b) { return a > b ? a : b; }

static inline float sum_4(const float *row) { return (row[0] + row[2]) + (row[1] + row[3]); }

static inline float sum_8(const float *row) {
  float halves[4];
  for (int k = 0; k < 4; ++k) halves[k] = row[k] + row[k + 4];
  return sum_4(halves);
}

static inline float peak_8(const float *row) {
  float halves[4];
  for (int k = 0; k < 4; ++k) halves[k] = larger(row[k], row[k + 4]);
  return larger(larger(halves[0], halves[2]), larger(halves[1], halves[3]));
}

// Assign.

typedef struct {
  const int32_t *slots;  // or NULL: a range
  int64_t first, capacity;
  const float *weights;
  int64_t count;
} changes_t;

static inline int64_t slot_of(const changes_t *changes, int64_t i) {
  if (changes->slots) return changes->slots[i];
  const int64_t slot = changes->first + i;
  return slot >= changes->capacity ? slot - changes->capacity : slot;
}

// Set leaves first ... last - 1 of the changes; returns how many slots are inside, and these in
// `slots`.
static int64_t set_leaves(const tree_t *tree, const changes_t *changes, int64_t first, int64_t last,
                          int32_t *slots) {
  int64_t num_inside = 0;
  for (int64_t i = first; i < last; ++i) {
    const int64_t slot = slot_of(changes, i);
    if (slot < 0 || slot >= tree->size) continue;
    tree->leaves[slot] = changes->weights[i];
    slots[num_inside++] = (int32_t)slot;
  }
  return num_inside;
}

// Divide nodes by 2^shift and leave out those that equal the one before; returns how many stay.
static int64_t lift(int32_t *nodes, int64_t count, int shift) {
  int64_t kept = 0;
  int32_t previous = -1;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t node = nodes[i] >> shift;
    nodes[kept] = node;
    kept += node != previous;
    previous = node;
  }
  return kept;
}

static inline void join(const tree_t *tree, int32_t node) {
  const node_t *children = tree->heap + 2 * node;
  tree->heap[node] =
      (node_t){children[0].sum + children[1].sum, larger(children[0].peak, children[1].peak)};
}

// Recompute what is over `count` leaves, level by level, so that one's cache misses overlap.
static void recompute(const tree_t *tree, int32_t *nodes, int64_t count) {
  int32_t width = tree->rows;
  count = lift(nodes, count, ROW_BITS);
  for (int64_t i = 0; i < count; ++i) {
    const float *row = tree->leaves + (int64_t)LEAF_ROW * nodes[i];
    nodes[i] += width;
    tree->heap[nodes[i]] = (node_t){sum_8(row), peak_8(row)};
  }
  for (; width > count && width > 1; width /= 2) {
    int64_t kept = 0;
    int32_t previous = -1;
    for (int64_t i = 0; i < count; ++i) {
      const int32_t node = nodes[i] / 2;
      join(tree, node);
      nodes[kept] = node;
      kept += node != previous;
      previous = node;
    }
    count = kept;
  }
  // Most of the few nodes that are left have changed.
  for (int32_t node = count > 0 ? width - 1 : 0; node > 0; --node) join(tree, node);
}

static void assign(const tree_t *tree, const changes_t *changes) {
  for (int64_t first = 0; first < changes->count; first += CHUNK) {
    const int64_t left = changes->count - first;
    int32_t slots[CHUNK];
    recompute(tree, slots,
              set_leaves(tree, changes, first, first + (left < CHUNK ? left : CHUNK), slots));
  }
}

// Draw.

// 24 bits, which a float holds exactly, as replay/sum_tree.py computes it. The detour through
// int32_t is one instruction of SSE2, which converts no unsigned numbers.
static inline float uniform(uint32_t word) { return (float)(int32_t)(word >> 8) * 0x1p-24f; }

// Choose a child: returns 1 and subtracts `left` from `rest` if the position lies in the right one.
// Branches would be mispredicted, so the subtrahend is masked. Rounding may leave a rest above the
// sum of both: a child of weight 0 is never entered.
static inline int32_t go(float *rest, float left, float right) {
  const int32_t goes_right = (*rest >= left) & (right > 0);
  uint32_t bits;
  memcpy(&bits, &left, sizeof bits);
  bits &= 0u - (uint32_t)goes_right;
  memcpy(&left, &bits, sizeof bits);
  *rest -= left;
  return goes_right;
}

static void descend(const node_t *heap, int32_t *nodes, float *rests, int64_t count, int levels) {
  for (int level = 0; level < levels; ++level)
    for (int64_t i = 0; i < count; ++i)
      nodes[i] = 2 * nodes[i] + go(rests + i, heap[2 * nodes[i]].sum, heap[2 * nodes[i] + 1].sum);
}

// The index of an entry of a row of leaves.
static inline int32_t choose(const float *row, float rest) {
  int32_t at = 4 * go(&rest, sum_4(row), sum_4(row + 4));
  at += 2 * go(&rest, row[at] + row[at + 1], row[at + 2] + row[at + 3]);
  return at + go(&rest, row[at], row[at + 1]);
}

typedef struct {
  float total;
  const float *positions;
  const uint32_t *words;  // [2][stride]
  int64_t stride;
  int32_t *slots;
  float *probabilities;
} draws_t;

// What `_refine` of sum_tree.py says.
static inline float refine(float rest, float part, float step, float mass) {
  const float finer = rest + part * step;
  return finer < mass ? finer : part * mass;
}

static void draw_chunk(const tree_t *tree, const draws_t *draws, int64_t count) {
  int32_t nodes[CHUNK];
  float rests[CHUNK], halves[CHUNK];
  const float total = draws->total;
  for (int64_t i = 0; i < count; ++i)
    nodes[i] = 1, rests[i] = larger(draws->positions[i] * total, 0);
  descend(tree->heap, nodes, rests, count, tree->depth / 2);
  for (int64_t i = 0; i < count; ++i)
    halves[i] = tree->heap[nodes[i]].sum,
    rests[i] = refine(rests[i], uniform(draws->words[i]), total * 0x1p-24f, halves[i]);
  descend(tree->heap, nodes, rests, count, tree->depth - tree->depth / 2);
  for (int64_t i = 0; i < count; ++i) {
    rests[i] = refine(rests[i], uniform(draws->words[draws->stride + i]), halves[i] * 0x1p-24f,
                      tree->heap[nodes[i]].sum);
    nodes[i] -= tree->rows;
    __builtin_prefetch(tree->leaves + (int64_t)LEAF_ROW * nodes[i]);
  }
  for (int64_t i = 0; i < count; ++i) {
    const int32_t row = LEAF_ROW * nodes[i];
    const int32_t slot = row + choose(tree->leaves + row, rests[i]);
    draws->slots[i] = slot;
    draws->probabilities[i] = total > 0 ? tree->leaves[slot] / total : 0;
  }
}

static void draw(const tree_t *tree, draws_t draws, int64_t count) {
  for (int64_t first = 0; first < count; first += CHUNK) {
    draw_chunk(tree, &draws, count - first < CHUNK ? count - first : CHUNK);
    draws.positions += CHUNK;
    draws.words += CHUNK;
    draws.slots += CHUNK;
    draws.probabilities += CHUNK;
  }
}

#endif
