"""Sum tree for CPUs: a binary heap over rows of leaves, recomputed, never adjusted.

Each update recomputes parents as sums of their children, so that rounding errors do not accumulate.
Levels of the heap are passed in loops: unrolled, XLA's CPU backend fuses them, and computes a level
again for each use of it. Descent adds random bits below its position's last bit halfway down the
heap and again below it, because one float32 cannot tell the items of a large buffer apart.

Reference: Schaul et al., "Prioritized experience replay", ICLR 2016, appendix B.2.1.
"""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.control_flow import compiled_apart, write_nothing
from accel_rl.replay.ring import wrap
from accel_rl.types import Array
from accel_rl.words import unit_float

LEAF_ROW = 8  # leaves under the lowest inner node
TOP = 64  # nodes of a level that are recomputed whole, and all over it
NUM_WORDS = 2  # rows of random words that a draw takes
STEP = np.float32(2**-24)  # step of a position; bounds a rest's step over its node's sum


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SumTree:
    """Weights and their sums; a pytree. H rows of leaves, a power of two.

    Node H + k of the heap is over row k, other nodes k over 2k and 2k + 1; 1 is the root. Sum and
    peak, the largest leaf, of a node and of its sibling lie in one line of a cache.
    """

    leaves: Array  # [H * 8] float32, zeros beyond the capacity
    heap: Array  # [2 * H * 2] float32, at 2k the sum of node k and at 2k + 1 its peak; 0 unused
    total: Array  # float32, the root's sum; reading it in the heap would make XLA copy the heap
    highest: Array  # float32, the root's peak


def init(capacity: int) -> SumTree:
    """Return a tree over `capacity` leaves, all 0."""
    rows = _power_of_two(-(-capacity // LEAF_ROW))
    zeros = functools.partial(jnp.zeros, dtype=jnp.float32)
    return SumTree(zeros(rows * LEAF_ROW), zeros(4 * rows), zeros(()), zeros(()))


def total(tree: SumTree) -> Array:
    """Return the sum of all weights, float32."""
    return tree.total


def highest(tree: SumTree) -> Array:
    """Return the largest weight, float32."""
    return tree.highest


def leaves(tree: SumTree) -> Array:
    """Return all weights, float32 [at least capacity]."""
    return tree.leaves


def assign(tree: SumTree, slots: Array, weights: Array) -> SumTree:
    """Set leaves; keep the last of several weights for one slot, ignore slots out of range.

    Args:
      tree: the weights.
      slots: [n] int32.
      weights: [n] float32, finite and not negative.
    """
    beyond = np.int32(tree.leaves.shape[0])
    inside = (slots >= 0) & (slots < beyond)
    # A negative index would count from the end, as in NumPy; one beyond the end is dropped.
    leaves = tree.leaves.at[jnp.where(inside, slots, beyond)].set(weights, mode="drop")
    # Row 0 stands in for dropped slots: recomputing the sums of unchanged leaves changes nothing.
    changed = jnp.where(inside, slots, np.int32(0))
    return _recompute(dataclasses.replace(tree, leaves=leaves), changed)


def assign_range(tree: SumTree, first: Array, weights: Array, capacity: int) -> SumTree:
    """Set n consecutive leaves, around the end of the capacity, faster than `assign`.

    Args:
      tree: the weights.
      first: int32, the first slot.
      weights: [n] float32, n at most the capacity.
      capacity: slots of the ring, after which leaves continue at 0.
    """
    n = weights.shape[0]

    def around(offsets: np.ndarray) -> Array:
        return wrap(first + offsets.astype(np.int32), capacity)

    slots = around(np.arange(n))
    leaves = tree.leaves.at[slots].set(weights, mode="promise_in_bounds", unique_indices=True)
    tree = dataclasses.replace(tree, leaves=leaves)
    if n <= -(-n // LEAF_ROW) + 2:
        return _recompute(tree, slots)
    # Steps of a row's width visit every changed row, except perhaps the last before the wrap and
    # the last of the range: both are appended.
    met = around(np.append(np.arange(0, n, LEAF_ROW), n - 1))
    return _recompute(tree, jnp.append(met, np.int32(capacity - 1)))


# Else all who use the slots, such as the gather of each field, would repeat the end of the walk.
@compiled_apart
def draw(tree: SumTree, positions: Array, words: Array) -> tuple[Array, Array]:
    """Return the slots at positions of the cumulative weights, and their probabilities.

    Args:
      tree: the weights.
      positions: [n] float32 in [0, 1), fractions of the total.
      words: [2, n] uint32, random bits of the positions below their last bit.

    Returns:
      Slots [n] int32, never one of weight 0, and probabilities [n] float32; zeros if all weights
        are 0.
    """
    heap, rows = tree.heap, tree.heap.shape[0] // 4
    depth = rows.bit_length() - 1
    node, rest = jnp.ones_like(positions, jnp.int32), _product(positions, tree.total)
    node, rest = _descend(heap, node, rest, depth // 2)
    half = _get(heap, 2 * node)
    rest = _refine(rest, unit_float(words[0]), tree.total * STEP, half)
    node, rest = _descend(heap, node, rest, depth - depth // 2)
    rest = _refine(rest, unit_float(words[1]), half * STEP, _get(heap, 2 * node))
    node -= np.int32(rows)
    slots, weights = _choose(tree.leaves.reshape(-1, LEAF_ROW), node, rest)
    return slots, jnp.where(tree.total > 0, weights / tree.total, np.float32(0))


def _refine(rest: Array, part: Array, step: Array, mass: Array) -> Array:
    """Add bits below the last step of a rest within a node of sum `mass`; redraw a rest outside it.

    A rest is outside if the node is smaller than a step, or by rounding at the node's end.
    """
    finer = rest + _product(part, step)
    return jnp.where(finer < mass, finer, part * mass)


def _product(part: Array, whole: Array) -> Array:
    """Return the product, at least 0."""
    product = part * whole
    # The select also keeps XLA from contracting the product with a sum, which the C kernel does
    # not do either: results must be bit-identical.
    return jnp.where(product > 0, product, np.float32(0))


def _descend(heap: Array, node: Array, rest: Array, levels: int) -> tuple[Array, Array]:
    def step(_: int, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        node, rest = carry
        left, right = _get(heap, 4 * node), _get(heap, 4 * node + 2)
        # Rounding may leave a rest that is too large: never descend into an empty subtree.
        go_right = (rest >= left) & (right > 0)
        return 2 * node + go_right.astype(jnp.int32), jnp.where(go_right, rest - left, rest)

    return jax.lax.fori_loop(0, levels, step, (node, rest))


def _choose(rows: Array, node: Array, rest: Array) -> tuple[Array, Array]:
    """Walk down a row by halves; return the entry's index in flat rows and its value."""
    row = _get(rows, node)
    while (width := row.shape[-1]) > 1:
        halves = row[:, : width // 2], row[:, width // 2 :]
        left, right = (_sum(half) for half in halves)
        go_right = (rest >= left) & (right > 0)
        node = 2 * node + go_right.astype(jnp.int32)
        rest = jnp.where(go_right, rest - left, rest)
        row = jnp.where(go_right[:, None], halves[1], halves[0])
    return node, row[:, 0]


def _recompute(tree: SumTree, slots: Array) -> SumTree:
    """Recompute the sums and peaks over changed leaves; `slots` has one of each changed row."""
    rows = tree.heap.shape[0] // 4
    node = slots >> np.int32(LEAF_ROW.bit_length() - 1)
    row = _get(tree.leaves.reshape(-1, LEAF_ROW), node)
    node += np.int32(rows)
    heap = _set_node(tree.heap, node, _sum(row), _fold(row, jnp.maximum))

    def step(_: int, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        heap, node = carry
        # Slots below one parent all write the same sum, so the order of duplicates is irrelevant.
        left, right = 2 * (node & ~np.int32(1)), 2 * (node | np.int32(1))
        sums = _get(heap, left) + _get(heap, right)
        peaks = jnp.maximum(_get(heap, left + 1), _get(heap, right + 1))
        node = node >> np.int32(1)
        return _set_node(heap, node, sums, peaks), node

    # The topmost nodes are recomputed whole, in fewer operations than level by level.
    top = min(rows, max(TOP, _power_of_two(node.shape[0])))
    heap, node = jax.lax.fori_loop(0, (rows // top).bit_length() - 1, step, (heap, node))
    # XLA does not know that it is 0. It would write over all of a heap that is read at constants.
    first = jnp.where(node[0] < 0, np.int32(1), np.int32(0))
    heap, total, highest = _recompute_top(heap, top, first)
    return SumTree(write_nothing(tree.leaves, total + highest), heap, total, highest)


def _set_node(heap: Array, node: Array, sums: Array, peaks: Array) -> Array:
    # In one write: XLA would copy the heap between two.
    at = jnp.concatenate([2 * node, 2 * node + 1])
    return _set(heap, at, jnp.concatenate([sums, peaks]))


def _recompute_top(heap: Array, width: int, first: Array) -> tuple[Array, Array, Array]:
    """Recompute the nodes over a level of a heap; return it, and its root. `first` must be 0."""
    level = _get(heap, jnp.arange(2 * width, 4 * width, dtype=jnp.int32) + first)
    sums, peaks = [level[0::2]], [level[1::2]]
    while (width := width // 2) > 0:
        sums.append(sums[-1][0::2] + sums[-1][1::2])
        peaks.append(jnp.maximum(peaks[-1][0::2], peaks[-1][1::2]))
    over = (jnp.concatenate(levels[:0:-1] or levels) for levels in (sums, peaks))
    nodes = jnp.stack(tuple(over), axis=1).reshape(-1)
    indices = jnp.arange(2, 2 + nodes.shape[0], dtype=jnp.int32)
    return _set(heap, indices, nodes), sums[-1][0], peaks[-1][0]


def _sum(rows: Array) -> Array:
    """Sum over the last axis by halves: the C kernel adds in the same order, to the same bits."""
    return _fold(rows, jnp.add)


def _fold(rows: Array, join: Callable[[Array, Array], Array]) -> Array:
    """Join the entries of the last axis, a power of two, by halves, which vectorises."""
    while (width := rows.shape[-1]) > 1:
        rows = join(rows[..., : width // 2], rows[..., width // 2 :])
    return rows[..., 0]


# No index is negative: the select for those that are would be a kernel of its own in the loops.
def _get(array: Array, index: Array) -> Array:
    return array.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def _set(array: Array, index: Array, values: Array) -> Array:
    return array.at[index].set(values, mode="promise_in_bounds", wrap_negative_indices=False)


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()
