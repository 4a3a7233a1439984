"""Exact searches of AMPER-k: the N_g stored weights nearest to each value, from one sort.

Of sorted weights, those nearest to a value are neighbours. So a group's matches are a window of the
sorted weights, whose start a bisection finds.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.replay.amper import Amper, Search, positive, representatives
from accel_rl.replay.blocks import Blocks
from accel_rl.replay.sampler import Span
from accel_rl.types import Array

POINTS = 64  # values of a group over which inclusion probabilities are averaged


def matches_per_weight(csp_ratio: Array, stored: Blocks, span: Span) -> Array:
    """Return lambda of AMPER-k: csp_ratio over the mean weight, at most 1 over the highest.

    Above that, groups of large weights would find more items than they hold: with heavy tails
    mostly items of the lowest weights.
    """
    rate = csp_ratio * jnp.maximum(span.size, 1).astype(jnp.float32) / positive(stored.total)
    return jnp.minimum(rate, 1 / positive(stored.highest))


class _Window(NamedTuple):
    """Sorted weights at positions [first, last) and [next_first, next_last)."""

    first: Array
    last: Array
    next_first: Array
    next_last: Array


def exact_search(groups: int, state: Amper, span: Span, words: Array) -> Search:
    """Search for the N_g weights nearest to each V_g, N_g rounded to the nearest integer.

    Of equally near weights the lower ones come first, and of equal weights those in lower slots.

    Args:
      groups: m.
      state: of the sampler.
      span: slots that hold items.
      words: random words [2, at least m] uint32.
    """
    weights = state.blocks.weights
    highest = positive(state.blocks.highest)
    rate = matches_per_weight(state.csp_ratio, state.blocks, span)
    # Slots without an item sort behind all others; a stable sort keeps slots of ties in order.
    keys = jnp.where(weights > 0, weights, np.float32(np.inf))
    slot = jnp.arange(weights.shape[0], dtype=jnp.int32)
    ascending, order = jax.lax.sort((keys, slot), num_keys=1, is_stable=True)
    position = jnp.zeros_like(slot).at[order].set(slot, unique_indices=True)
    count = jnp.sum(weights > 0, dtype=jnp.int32)
    edges = jnp.asarray(np.arange(groups, dtype=np.float32) / np.float32(groups)) * highest
    lower = jnp.searchsorted(ascending, edges).astype(jnp.int32)
    number = jnp.diff(jnp.append(lower, count)).astype(jnp.float32)

    def windows(value: Array) -> _Window:
        """Return each group's window for values [..., m]."""
        wanted = jnp.round(rate * value * number).astype(jnp.int32)
        return _window(ascending, count, value, jnp.minimum(wanted, count))

    queried = windows(representatives(words, groups) * highest)
    changes = jnp.zeros(weights.shape[0] + 1, jnp.int32)
    for start, end in (queried[:2], queried[2:]):
        changes = changes.at[start].add(1).at[end].add(-1)
    found = jnp.cumsum(changes)[:-1] > 0
    at = (jnp.arange(POINTS, dtype=jnp.float32) + np.float32(0.5)) / np.float32(POINTS)
    averaged = windows(edges + at[:, None] * highest / np.float32(groups))

    def member(weights: Array, slots: Array) -> Array:
        return found[position[slots]]

    def included(weights: Array, slots: Array) -> Array:
        here = position[slots][:, None, None]
        inside = (here >= averaged.first) & (here < averaged.last)
        inside |= (here >= averaged.next_first) & (here < averaged.next_last)
        found = 1 - jnp.prod(1 - jnp.mean(inside.astype(jnp.float32), axis=1), axis=1)
        # An item that was drawn may lie between the points, by which it has no probability.
        return jnp.maximum(found, np.float32(0.5 / POINTS))

    return Search(member, included)


def _window(ascending: Array, count: Array, value: Array, wanted: Array) -> _Window:
    last = ascending.shape[0] - 1

    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) // 2
        below = value - ascending[jnp.minimum(middle, last)]
        above = ascending[jnp.minimum(middle + wanted, last)] - value
        on = (low < high) & (below > above)
        return jnp.where(on, middle + 1, low), jnp.where(on, high, jnp.minimum(middle, high))

    steps = last.bit_length() + 1
    ends = jnp.zeros_like(wanted), count - wanted
    first, _ = jax.lax.fori_loop(0, steps, halve, ends)
    # Where the window begins among equal weights, it takes those in the lowest slots.
    lowest = ascending[jnp.minimum(first, last)]
    start = jnp.searchsorted(ascending, lowest, side="left").astype(jnp.int32)
    end = jnp.searchsorted(ascending, lowest, side="right").astype(jnp.int32)
    equal = jnp.minimum(end, first + wanted) - first
    return _Window(start, start + equal, first + equal, first + wanted)
