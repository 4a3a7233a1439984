"""Sampling orders of a chunk's rows in a pass (SwiftRL's SEQ, STR, RAN).

An order is a permutation of the rows of one DPU's chunk. RAN with replacement is the exception: it
draws as many rows as the chunk has, independently. By owner RAN rotates the rows of each run.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import one_of, whole
from accel_rl.tabular import random
from accel_rl.types import Array
from accel_rl.words import high_product

RANDOM_BLOCK = 128  # rows moved together by RAN: one 1 KiB transfer of 8-byte records
MAX_RANDOM_ROWS = 65_536 * RANDOM_BLOCK  # block indices must fit the 16-bit draws of `below`


class Order(NamedTuple):
    """Sampling order; made by `make_order`.

    Attributes:
      name: "SEQ", "STR", "RAN" or "RAN_REPLACEMENT".
      stride: distance of consecutive rows in STR.
    """

    name: str
    stride: int = 4

    @property
    def random(self) -> bool:
        """True if each pass has its own order."""
        return self.name.startswith("RAN")


NAMES = ("SEQ", "STR", "RAN", "RAN_REPLACEMENT")


def make_order(name: str, stride: int = 4) -> Order:
    """Make the order called `name`.

    Args:
      name: "SEQ": as stored. "STR": rows o, o + stride, o + 2 * stride, ... for o = 0, 1, ...
        "RAN": without replacement, a random permutation of blocks of 128 rows times a random
        permutation within a block; by owner each run from a random row on, cyclically.
        "RAN_REPLACEMENT": independent draws.
      stride: distance of consecutive rows in STR, at least 1.
    """
    one_of("order", name, NAMES)
    whole("stride", stride, 1)
    return Order(name, stride)


def check_capacity(order: Order, capacity: int) -> None:
    """Raise ValueError if a chunk is too long for the order's draws."""
    if order.name == "RAN" and capacity > MAX_RANDOM_ROWS:
        raise ValueError(f"RAN orders chunks of at most {MAX_RANDOM_ROWS} rows, got {capacity}")


def row_index(order: Order, capacity: int, length: Array, key: Array) -> Array:
    """Return the index of the row that each step of a pass takes.

    Args:
      order: the order, static.
      capacity: rows of the padded chunk, static; at most `MAX_RANDOM_ROWS` for RAN.
      length: int32 [], number of real rows, at most `capacity`.
      key: uint32 [], the pass's stream (see `random.stream_key`); unused by SEQ and STR.

    Returns:
      int32 [capacity]; step t >= length takes row t, which is padding.
    """
    check_capacity(order, capacity)
    step = jnp.arange(capacity, dtype=jnp.int32)
    if order.name == "SEQ":
        return step
    if order.name == "STR":
        index = _strided(step, length, order.stride)
    elif order.name == "RAN":
        index = _block_permutation(step, length, key)
    else:
        draws = random.lcg_draws(key, capacity)
        index = high_product(draws, length.astype(jnp.uint32)).astype(jnp.int32)
    return jnp.where(step < length, index, step)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RunPlaces:
    """Runs of the rows of M lanes, at most T rows each; made by `place_runs`."""

    number: Array  # [T, M] int32, of the run in its lane
    begin: Array  # [T, M] int32, step of the run's first row
    rows: Array  # [T, M] int32, rows of the run, at least 1


def place_runs(first: Array, valid: Array) -> RunPlaces:
    """Find the runs of lanes [T, M] from their first rows; rows that are not valid are padding."""
    step = jnp.arange(first.shape[0], dtype=jnp.int32)[:, None]
    size = valid.sum(axis=0, dtype=jnp.int32)[None, :]
    number = jnp.cumsum(first, axis=0, dtype=jnp.int32) - 1
    begin = jax.lax.cummax(jnp.where(first, step, 0), axis=0)
    following = jnp.concatenate([jnp.where(first, step, size)[1:], size])
    end = jax.lax.cummin(following, axis=0, reverse=True)
    return RunPlaces(jnp.maximum(number, 0), begin, jnp.maximum(end - begin, 1))


def rotate_runs(places: RunPlaces, keys: Array, most: int) -> Array:
    """Return the step whose row each step of a pass takes by owner in RAN, int32 [T, M].

    Args:
      places: from `place_runs`.
      keys: uint32 [M], each lane's stream of order draws; a run takes one draw.
      most: runs of a lane at most, static.
    """
    draws = random.lcg_draws(keys, most)  # [M, most]
    draw = jnp.take_along_axis(draws, places.number.T, axis=1, mode="clip").T
    offset = high_product(draw, places.rows.astype(jnp.uint32)).astype(jnp.int32)
    step = jnp.arange(places.rows.shape[0], dtype=jnp.int32)[:, None]
    return places.begin + (step - places.begin + offset) % places.rows


def _strided(step: Array, length: Array, stride: int) -> Array:
    # The first `longer` offsets have one row more than the others.
    rows, longer = length // stride, length % stride
    boundary = longer * (rows + 1)
    early = (step // (rows + 1)) + stride * (step % (rows + 1))
    late_step = step - boundary
    width = jnp.maximum(rows, 1)
    late = longer + late_step // width + stride * (late_step % width)
    return jnp.where(step < boundary, early, late)


def _block_permutation(step: Array, length: Array, key: Array) -> Array:
    """Permute the blocks, and the rows within all blocks alike; the last block may be short.

    Draws are taken from the stream in this order: first the permutation within a block, then the
    permutation of the blocks.
    """
    size = RANDOM_BLOCK
    capacity_blocks = max(-(-step.shape[0] // size), 1)
    blocks = (length + (size - 1)) // size
    within, key = _shuffle(size, jnp.int32(size), key)
    order, _ = _shuffle(capacity_blocks, blocks, key)
    last = jnp.argmax(order == blocks - 1).astype(jnp.int32)
    last_size = length - (blocks - 1) * size
    # The short block keeps the order of the others, less the positions that it does not have.
    kept = within < last_size
    slot = jnp.where(kept, jnp.cumsum(kept, dtype=jnp.int32) - 1, size)
    tail = jnp.zeros(size, jnp.int32).at[slot].set(within, mode="drop")
    shifted = step + jnp.where(step >= last * size + last_size, size - last_size, 0)
    block, position = shifted // size, shifted % size
    return jnp.where(
        block == last,
        (blocks - 1) * size + tail[position],
        order.at[block].get(mode="clip") * size + within[position],
    )


def _shuffle(capacity: int, count: Array, key: Array) -> tuple[Array, Array]:
    """Shuffle the numbers 0 to count - 1 by Fisher-Yates; one draw for i = count - 1, ..., 1."""

    def swap(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        values, state = carry
        i = capacity - 1 - k
        active = i < count
        state = jnp.where(active, random.lcg_next(state), state)
        j = random.below(state, (i + 1).astype(jnp.uint32)).astype(jnp.int32)
        j = jnp.where(active, j, i)
        at_i, at_j = values[i], values[j]
        return values.at[i].set(at_j).at[j].set(at_i), state

    numbers = jnp.arange(capacity, dtype=jnp.int32)
    return jax.lax.fori_loop(np.int32(0), np.int32(max(capacity - 1, 0)), swap, (numbers, key))
