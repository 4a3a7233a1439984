"""Weights with the sum and maximum of each block and of all blocks, without a tree.

AMPER needs only the largest and the mean of the stored weights. A block is summed anew whenever one
of its weights changes, so that rounding errors do not accumulate.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.control_flow import order_after, write_nothing
from accel_rl.replay.ring import wrap
from accel_rl.types import Array

MOST_BLOCK = 256


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Blocks:
    """Weights in blocks; a pytree. K blocks of W."""

    weights: Array  # [K * W] float32, zeros beyond the capacity
    sums: Array  # [K] float32
    peaks: Array  # [K] float32
    total: Array  # float32
    highest: Array  # float32


def init(capacity: int, widest: int = MOST_BLOCK) -> Blocks:
    """Return blocks of weights, all 0: about as many as each has, but none above `widest`."""
    width = min(1 << (capacity - 1).bit_length() // 2, widest)
    number = -(-capacity // width)
    return Blocks(
        jnp.zeros(number * width, jnp.float32),
        jnp.zeros(number, jnp.float32),
        jnp.zeros(number, jnp.float32),
        jnp.float32(0),
        jnp.float32(0),
    )


def assign(blocks: Blocks, slots: Array, weights: Array) -> Blocks:
    """Set weights at slots [n] without duplicates; ignore slots out of range."""
    number = blocks.sums.shape[0]
    width = blocks.weights.shape[0] // number
    inside = (slots >= 0) & (slots < blocks.weights.shape[0])
    beyond = np.int32(blocks.weights.shape[0])
    # After the reads that an earlier call computed these from.
    weights = order_after(weights, jnp.stack([blocks.total, blocks.highest]))
    changed = blocks.weights.at[jnp.where(inside, slots, beyond)].set(weights, mode="drop")
    rows = changed.reshape(number, width)
    whole = slots.shape[0] >= number
    if whole:
        sums, peaks = rows.sum(axis=1), rows.max(axis=1)
    else:
        block = jnp.where(inside, slots, np.int32(0)) // np.int32(width)
        rows = rows.at[block].get(mode="promise_in_bounds")
        sums = blocks.sums.at[block].set(rows.sum(axis=1), mode="promise_in_bounds")
        peaks = blocks.peaks.at[block].set(rows.max(axis=1), mode="promise_in_bounds")
    total, highest = sums.sum(), peaks.max()
    read = jnp.stack([total, highest])
    if whole:  # XLA computes all four from the weights
        read = jnp.concatenate([read, sums, peaks])
    return Blocks(write_nothing(changed, read), sums, peaks, total, highest)


def last_of_each(slots: Array) -> Array:
    """Return True for each of the slots [n] that does not occur again later, bool [n]."""
    n = slots.shape[0]
    later = np.arange(n)[None, :] > np.arange(n)[:, None]
    return ~jnp.any((slots[:, None] == slots[None, :]) & later, axis=1)


def around(first: Array, number: int, capacity: int) -> Array:
    """Return `number` consecutive slots from `first`, around the end of the capacity, int32."""
    return wrap(first + jnp.arange(number, dtype=jnp.int32), capacity)
