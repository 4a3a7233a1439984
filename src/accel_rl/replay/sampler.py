"""The contract of samplers: a weight for each slot, and draws with known probabilities."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from accel_rl.replay.ring import Ring, wrap
from accel_rl.types import Array

State = Any


class Span(NamedTuple):
    """The slots that hold items: `size` of them from `first` on, around the ring."""

    first: Array  # int32
    size: Array  # int32

    def slot(self, offset: Array, capacity: int) -> Array:
        """The slots at int32 offsets in [0, size) from the first."""
        return wrap(self.first + offset, capacity)


class Sampler(NamedTuple):
    """Pure functions over a state that holds one weight for each slot of a memory.

    A weight is what drawing goes by; `scale` makes it of a priority. Slots of weight 0 are never
    drawn. Arrays of slots are int32, of weights and probabilities float32.
    """

    init: Callable[..., State]
    """init(**hyper-parameters): every slot has weight 0. Hyper-parameters are leaves."""

    scale: Callable[[State, Array], Array]
    """scale(state, priorities): the weights of priorities, such as their power alpha."""

    assign: Callable[[State, Array, Array], State]
    """assign(state, slots [n], weights [n]): the last of several weights for one slot stays;
    slots outside the capacity are left out."""

    assign_range: Callable[[State, Array, Array], State]
    """assign_range(state, first, weights [n]): as assign, of n slots in a row, around the end."""

    draw: Callable[[State, Span, Array, Array], tuple[Array, Array]]
    """draw(state, span, positions [n], words [num_words, n]): slots, and their probabilities in a
    single draw. `words` are random uint32.

    A position in [0, 1) says where in the distribution to draw, so that stratified positions give a
    stratified batch; a sampler without an order of slots may draw anywhere. Where there is nothing
    to draw, probabilities are 0.
    """

    mass: Callable[[State, Span], Array]
    """mass(state, span): what this memory counts for where several are drawn from as one."""

    least: Callable[[State, Span], Array] | None
    """least(state, span): the smallest probability of an item that can be drawn; None where it
    cannot be told."""

    highest: Callable[[State], Array]
    """highest(state): the largest weight of any slot, 0 where all are."""

    num_words: int
    """Random words that a draw of one item takes."""

    prioritised: bool = True
    """Whether priorities matter: updates are left out of a sampler for which they do not."""


def within(slots: Array, capacity: int) -> Array:
    """Slots, with -1 in place of those at or beyond the capacity."""
    return jnp.where(slots < capacity, slots, np.int32(-1))


# From a ring's sizes, and whether only some of its items may be drawn, to a sampler.
MakeSampler = Callable[[Ring, bool], Sampler]
"""make(ring, selective): a sampler for the ring's slots. `selective` says that some slots of a
span may have weight 0 though no priority was ever set to 0."""
