"""Two levels of sums for accelerators: rows of weights, and the sum of each row.

A draw searches the rows' sums and then one row, both by cumulative sums; an update sums the rows
that it changed. Neither reads all weights, as `wide_sum` does. Of N weights a row has about
sqrt(N): 1,024 of 2^20.
"""

import jax.numpy as jnp
import numpy as np

from accel_rl.replay import blocks
from accel_rl.replay.blocks import Blocks, around, last_of_each
from accel_rl.replay.wide_sum import search
from accel_rl.types import Array

NUM_WORDS = 1  # rows of random words that a draw takes
WIDEST = 2**15


def init(capacity: int) -> Blocks:
    """Return rows of weights, all 0."""
    return blocks.init(capacity, WIDEST)


def total(state: Blocks) -> Array:
    """Return the sum of all weights, float32."""
    return state.total


def highest(state: Blocks) -> Array:
    """Return the largest weight, float32."""
    return state.highest


def leaves(state: Blocks) -> Array:
    """Return all weights, float32 [at least capacity]."""
    return state.weights


def assign(state: Blocks, slots: Array, weights: Array) -> Blocks:
    """Set weights at int32 slots [n]; keep the last of several weights for one slot."""
    return blocks.assign(state, jnp.where(last_of_each(slots), slots, np.int32(-1)), weights)


def assign_range(state: Blocks, first: Array, weights: Array, capacity: int) -> Blocks:
    """Set n consecutive slots, around the end of the capacity; n is at most the capacity."""
    return blocks.assign(state, around(first, weights.shape[0], capacity), weights)


def draw(state: Blocks, positions: Array, words: Array) -> tuple[Array, Array]:
    """Return the slots at positions of the cumulative weights, and their probabilities.

    Args:
      state: the weights.
      positions: [n] float32 in [0, 1), fractions of the total.
      words: [1, n] uint32, random bits of the positions below their last bit.
    """
    rows = state.weights.reshape(state.sums.shape[0], -1)
    return search(rows, state.sums, positions, words)
