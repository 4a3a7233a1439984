"""Sums computed at each draw, for accelerators: no tree to maintain, an update is one scatter.

Weights are in rows. A draw sums the rows, picks a row by the cumulative row sums, then a leaf by
the cumulative sums of that row, with random bits below the position's last bit. The work grows with
the capacity, but in a few wide operations.
"""

import jax.numpy as jnp
import numpy as np

from accel_rl.replay.blocks import around, last_of_each
from accel_rl.types import Array
from accel_rl.words import unit_float

NUM_WORDS = 1  # rows of random words that a draw takes
MOST_COLUMNS = 1024


def init(capacity: int) -> Array:
    """Return zero weights float32 [R * C], at least `capacity`: R rows of C, R about C."""
    columns = _columns(capacity)
    return jnp.zeros(-(-capacity // columns) * columns, jnp.float32)


def assign(weights: Array, slots: Array, values: Array) -> Array:
    """Set weights [R * C] at int32 slots [n]; keep the last of several values for one slot.

    The order of a scatter's duplicate indices is undefined, so all but the last are dropped first.
    """
    beyond = np.int32(weights.size)
    inside = (slots >= 0) & (slots < beyond) & last_of_each(slots)
    return weights.at[jnp.where(inside, slots, beyond)].set(values, mode="drop")


def assign_range(weights: Array, first: Array, values: Array, capacity: int) -> Array:
    """Set n consecutive slots, around the end of the capacity; n is at most the capacity."""
    slots = around(first, values.shape[0], capacity)
    return weights.at[slots].set(values, mode="promise_in_bounds", unique_indices=True)


def total(weights: Array) -> Array:
    """Return the sum of all weights, float32."""
    return _rows(weights).sum(axis=1).sum()


def highest(weights: Array) -> Array:
    """Return the largest weight, float32."""
    return jnp.max(weights)


def leaves(weights: Array) -> Array:
    """Return all weights, float32 [at least capacity]."""
    return weights


def draw(weights: Array, positions: Array, words: Array) -> tuple[Array, Array]:
    """Return the slots at positions of the cumulative weights, and their probabilities.

    Args:
      weights: [R * C] float32.
      positions: [n] float32 in [0, 1), fractions of the total.
      words: [1, n] uint32, random bits of the positions below their last bit.
    """
    rows = _rows(weights)
    return search(rows, rows.sum(axis=1), positions, words)


def search(rows: Array, sums: Array, positions: Array, words: Array) -> tuple[Array, Array]:
    """Return what `draw` does, from rows of weights [R, C] and their sums [R]."""
    cumulated = jnp.cumsum(sums)
    whole = cumulated[-1]
    target = positions * whole
    row = reach(cumulated[None, :], sums[None, :], target)
    leaves = rows[row]
    before = cumulated[row] - sums[row]
    rest = jnp.maximum(target - before, 0) + unit_float(words[0]) * (whole * np.float32(2**-24))
    column = reach(jnp.cumsum(leaves, axis=1), leaves, rest)
    weight = jnp.take_along_axis(leaves, column[:, None], axis=1)[:, 0]
    probability = jnp.where(whole > 0, weight / whole, np.float32(0))
    return row * np.int32(rows.shape[1]) + column, probability


def reach(cumulated: Array, entries: Array, target: Array) -> Array:
    """Return the first positive entry of each row whose cumulative sum exceeds the target.

    If there is none, because rounding made the target too large, return the last positive entry.
    Entries of 0 are excluded because rounding may raise the cumulative sum at them.
    """
    positive = entries > 0
    above = (cumulated > target[:, None]) & positive
    last = entries.shape[1] - 1 - jnp.argmax(positive[:, ::-1], axis=1)
    return jnp.where(above.any(axis=1), jnp.argmax(above, axis=1), last).astype(jnp.int32)


def _rows(weights: Array) -> Array:
    return weights.reshape(-1, _columns(weights.size))


def _columns(capacity: int) -> int:
    """Return a power of two near sqrt(capacity), unchanged if capacity is padded to whole rows."""
    return min(1 << ((capacity - 1).bit_length() + 1) // 2, MOST_COLUMNS)
