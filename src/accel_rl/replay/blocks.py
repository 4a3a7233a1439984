"""Weights without a tree: the sum and the maximum of each block, and those of all blocks.

What AMPER must know of its memory is small: the largest weight and the mean. Blocks are summed
anew whenever one of their weights changes, so that errors do not add up.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.replay.ring import wrap
from accel_rl.types import Array

MOST_BLOCK = 256


@dataclasses.dataclass(frozen=True)
class Blocks:
    """Weights in blocks; a pytree. K blocks of W."""

    weights: Array  # [K * W] float32, zeros behind the capacity
    sums: Array  # [K] float32
    peaks: Array  # [K] float32
    total: Array  # float32
    highest: Array  # float32


jax.tree_util.register_dataclass(Blocks, [field.name for field in dataclasses.fields(Blocks)], [])


def init(capacity: int) -> Blocks:
    """All weights 0."""
    width = min(1 << (capacity - 1).bit_length() // 2, MOST_BLOCK)
    number = -(-capacity // width)
    return Blocks(
        jnp.zeros(number * width, jnp.float32),
        jnp.zeros(number, jnp.float32),
        jnp.zeros(number, jnp.float32),
        jnp.float32(0),
        jnp.float32(0),
    )


def assign(blocks: Blocks, slots: Array, weights: Array) -> Blocks:
    """Set weights at slots [n]; slots off the end are left out, and none may be there twice."""
    width = blocks.weights.shape[0] // blocks.sums.shape[0]
    inside = (slots >= 0) & (slots < blocks.weights.shape[0])
    beyond = np.int32(blocks.weights.shape[0])
    # Always so, but the writing now waits for what an earlier call read: else XLA would copy.
    weights = jnp.where((blocks.total >= 0) & (blocks.highest >= 0), weights, np.float32(0))
    changed = blocks.weights.at[jnp.where(inside, slots, beyond)].set(weights, mode="drop")
    block = jnp.where(inside, slots, np.int32(0)) // np.int32(width)
    rows = changed.reshape(-1, width).at[block].get(mode="promise_in_bounds")
    sums = blocks.sums.at[block].set(rows.sum(axis=1), mode="promise_in_bounds")
    peaks = blocks.peaks.at[block].set(rows.max(axis=1), mode="promise_in_bounds")
    return Blocks(changed, sums, peaks, sums.sum(), peaks.max())


def last_of_each(slots: Array) -> Array:
    """Which of the slots [n] do not come again later, bool [n]."""
    n = slots.shape[0]
    later = np.arange(n)[None, :] > np.arange(n)[:, None]
    return ~jnp.any((slots[:, None] == slots[None, :]) & later, axis=1)


def around(first: Array, number: int, capacity: int) -> Array:
    """`number` slots in a row from the first on, around the end of the capacity, int32."""
    return wrap(first + jnp.arange(number, dtype=jnp.int32), capacity)
