"""Interface of samplers: a weight for each slot, and draws with known probabilities."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from accel_rl.replay.ring import Ring, wrap
from accel_rl.types import Array

State = Any


class Span(NamedTuple):
    """Slots that hold items: `size` consecutive slots from `first`, around the ring."""

    first: Array  # int32
    size: Array  # int32

    def slot(self, offset: Array, capacity: int) -> Array:
        """Return the slots at int32 offsets in [0, size) from the first."""
        return wrap(self.first + offset, capacity)


class Sampler(NamedTuple):
    """Pure functions over a state that holds one weight for each slot of a replay buffer.

    Weights determine the sampling probabilities; `scale` computes them from priorities. Slots of
    weight 0 are never drawn. Arrays of slots are int32, arrays of weights and probabilities
    float32.
    """

    init: Callable[..., State]
    """init(**hyper-parameters): a state in which every slot has weight 0. Hyper-parameters are
    leaves."""

    scale: Callable[[State, Array], Array]
    """scale(state, priorities): weights of the priorities, such as priorities^alpha."""

    assign: Callable[[State, Array, Array], State]
    """assign(state, slots [n], weights [n]): set weights; the last of several weights for one slot
    is kept, and slots outside the capacity are ignored."""

    assign_range: Callable[[State, Array, Array], State]
    """assign_range(state, first, weights [n]): as `assign`, for n consecutive slots, around the
    end."""

    draw: Callable[[State, Span, Array, Array], tuple[Array, Array]]
    """draw(state, span, positions [n], words [num_words, n]): slots, and their probabilities in a
    single draw. `words` are random uint32.

    A position in [0, 1) selects a quantile of the distribution, so that stratified positions give a
    stratified batch; a sampler that does not order slots may ignore it. If there is nothing to
    draw, probabilities are 0.
    """

    mass: Callable[[State, Span], Array]
    """mass(state, span): unnormalised probability of this buffer if several are sampled as one."""

    least: Callable[[State, Span], Array] | None
    """least(state, span): smallest probability of an item that can be drawn; None if it cannot be
    computed."""

    highest: Callable[[State], Array]
    """highest(state): largest weight of any slot, 0 if all are 0."""

    num_words: int
    """Random words for the draw of one item."""

    prioritised: bool = True
    """True if priorities matter; updates are skipped otherwise."""


def within(slots: Array, capacity: int) -> Array:
    """Return the slots, with -1 in place of those at or beyond the capacity."""
    return jnp.where(slots < capacity, slots, np.int32(-1))


# Factory of samplers, called with the ring of the buffer.
MakeSampler = Callable[[Ring, bool], Sampler]
"""make(ring, selective): a sampler for the ring's slots. `selective` means that some slots of a
span may have weight 0 although no priority was ever set to 0."""
