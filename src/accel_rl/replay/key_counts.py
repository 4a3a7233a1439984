"""Counts of weights by key: 16-bit floats, 256 keys to a factor of two."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import am
from accel_rl.types import Array

_BITS = 16
KEYS = 255 << (_BITS - 8)  # of finite numbers
_LEFT_OUT = np.uint32(31 - _BITS)  # low bits of a non-negative float32 that a key drops
_WINDOW = 1 << 12  # keys, up to the highest, over which counts are summed: 16 factors of two
_ROW = 64  # square root of the window: as many rows as columns


class KeyCounts(NamedTuple):
    """Counts over the window of keys up to that of the highest weight, uniform within a key.

    Lower weights, of less than 2^-16 of the highest, are taken as of one key.
    """

    first: Array  # int32, the first key
    start: Array  # float32, its least weight
    density: Array  # float32, number of lower weights over `start`
    each: Array  # [_WINDOW] float32
    before: Array  # [_WINDOW] float32, number of weights with lower keys

    def below(self, value: Array) -> Array:
        """Return the number of weights below each value, float32."""
        value = jnp.maximum(value, 0)
        pattern = jax.lax.bitcast_convert_type(value, jnp.uint32)
        place = (pattern >> _LEFT_OUT).astype(jnp.int32) - self.first
        part = (pattern & np.uint32((1 << 15) - 1)).astype(jnp.float32) * np.float32(2**-15)
        part = jnp.where(place >= _WINDOW, np.float32(1), part)
        inside = jnp.clip(place, 0, _WINDOW - 1)
        found = at(self.before, inside) + part * at(self.each, inside)
        return jnp.where(place < 0, self.density * value, found)

    def cell(self, weights: Array) -> tuple[Array, Array]:
        """Return the ends of each weight's key: [start, end) holds all weights with that key."""
        pattern = jax.lax.bitcast_convert_type(weights, jnp.uint32) >> _LEFT_OUT
        start, end = (
            jax.lax.bitcast_convert_type(each << _LEFT_OUT, jnp.float32)
            for each in (pattern, pattern + np.uint32(1))
        )
        lower = weights < self.start
        return jnp.where(lower, 0, start), jnp.where(lower, self.start, end)


def key_counts(counts: Array, highest: Array) -> KeyCounts:
    """Cumulate counts by key.

    Args:
      counts: [KEYS + 1] int32, weights above 0, and minus their number.
      highest: float32, the highest weight.
    """
    first = jnp.clip(key_of(highest) + 1 - _WINDOW, 1, KEYS - _WINDOW)
    each = jax.lax.dynamic_slice(counts, (first,), (_WINDOW,)).astype(jnp.float32)
    # Cumulative sums as matrix products over rows: exact, and XLA's cumsum is slow on a CPU.
    rows = each.reshape(-1, _ROW)
    strictly = jnp.asarray(np.triu(np.ones((_ROW, _ROW), np.float32), 1))
    before = jnp.dot(rows, strictly, precision=jax.lax.Precision.HIGHEST)
    rows_before = jnp.dot(rows.sum(axis=1), strictly, precision=jax.lax.Precision.HIGHEST)
    start = jax.lax.bitcast_convert_type(first.astype(jnp.uint32) << _LEFT_OUT, jnp.float32)
    lower = -counts[KEYS].astype(jnp.float32) - each.sum()
    before += rows_before[:, None] + lower
    return KeyCounts(first, start, lower / start, each, before.reshape(-1))


def key_of(weights: Array) -> Array:
    """Return the key of each weight; int32."""
    return am.encode(weights, bits=_BITS, form="float").astype(jnp.int32)


def at(array: Array, places: Array) -> Array:
    """Return the elements at places within the array, without checks, which are slow on a CPU."""
    return array.at[places].get(mode="promise_in_bounds")
