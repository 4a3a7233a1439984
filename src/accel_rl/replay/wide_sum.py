"""Sums made when they are needed, for accelerators: no tree to keep, an update is one scatter.

Weights lie in rows. A draw adds up the rows, picks rows by their cumulated sums, and then a leaf by
those of the picked row, with random bits below the position's last one. Work grows with the
capacity, but in a few wide operations.
"""

import jax.numpy as jnp
import numpy as np

from accel_rl.replay.random import uniform
from accel_rl.types import Array

MOST_COLUMNS = 1024


def init(capacity: int) -> Array:
    """Weights float32 [R * C], all 0: at least `capacity`, R rows of C, R about C."""
    columns = _columns(capacity)
    return jnp.zeros(-(-capacity // columns) * columns, jnp.float32)


def assign(weights: Array, slots: Array, values: Array) -> Array:
    """Set weights [R * C] at int32 slots [n]; the last of several values for one slot stays.

    Scatters do not say which of several values stays, so all but the last are left out first.
    """
    n = slots.shape[0]
    later = np.arange(n)[None, :] > np.arange(n)[:, None]
    again = jnp.any((slots[:, None] == slots[None, :]) & later, axis=1)
    beyond = np.int32(weights.size)
    inside = (slots >= 0) & (slots < beyond) & ~again
    return weights.at[jnp.where(inside, slots, beyond)].set(values, mode="drop")


def assign_range(weights: Array, first: Array, values: Array, capacity: int) -> Array:
    """Set n slots in a row, around the end of the capacity; n is at most the capacity."""
    slots = first + jnp.arange(values.shape[0], dtype=jnp.int32)
    slots = jnp.where(slots >= capacity, slots - np.int32(capacity), slots)
    return weights.at[slots].set(values, mode="promise_in_bounds", unique_indices=True)


def total(weights: Array) -> Array:
    """The sum of all weights, float32."""
    return _rows(weights).sum(axis=1).sum()


def draw(weights: Array, positions: Array, words: Array) -> tuple[Array, Array]:
    """Slots whose cumulated weights reach over the positions, and their probabilities.

    Args:
      weights: [R * C] float32.
      positions: [n] float32 in [0, 1), fractions of the total.
      words: [1, n] uint32, random: bits of the positions below their last one.
    """
    rows = _rows(weights)
    sums = rows.sum(axis=1)
    cumulated = jnp.cumsum(sums)
    whole = cumulated[-1]
    target = positions * whole
    row = _reach(cumulated[None, :], target)
    leaves = rows[row]
    before = cumulated[row] - sums[row]
    rest = jnp.maximum(target - before, 0) + uniform(words[0]) * (whole * np.float32(2**-24))
    column = _reach(jnp.cumsum(leaves, axis=1), rest)
    weight = jnp.take_along_axis(leaves, column[:, None], axis=1)[:, 0]
    probability = jnp.where(whole > 0, weight / whole, np.float32(0))
    return row * np.int32(rows.shape[1]) + column, probability


def _reach(cumulated: Array, target: Array) -> Array:
    """The first entry of each row that is above the target, which rounding may have made too large.

    Only an entry of positive weight lifts the sum above a target, so that none of weight 0 is met.
    """
    below = jnp.nextafter(cumulated[:, -1], jnp.zeros_like(cumulated[:, -1]))
    target = jnp.minimum(target, below)
    reached = jnp.sum(cumulated <= target[:, None], axis=1, dtype=jnp.int32)
    return jnp.minimum(reached, np.int32(cumulated.shape[1] - 1))


def _rows(weights: Array) -> Array:
    return weights.reshape(-1, _columns(weights.size))


def _columns(capacity: int) -> int:
    """A power of two near the square root, the same for a capacity and for it filled up to rows."""
    return min(1 << ((capacity - 1).bit_length() + 1) // 2, MOST_COLUMNS)
