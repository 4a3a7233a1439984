"""The index of a replay memory: which slots hold items, how to draw them, their priorities.

It knows nothing of what is stored, so that it can live apart from the store: on another device, or
in another process.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.replay import ring as rings
from accel_rl.replay.checks import known, require, sound_priorities
from accel_rl.replay.random import stratified, uniform
from accel_rl.replay.ring import Cursor, Ring
from accel_rl.replay.sampler import Sampler, Span
from accel_rl.types import Array, ArrayLike, Sample

WEIGHTS_OVER = ("batch", "buffer")


@dataclasses.dataclass(frozen=True)
class IndexState:
    """State of an index; a pytree. E environments, windows of w rows."""

    sampler: Any
    cursor: Cursor
    pending: Array  # [w - 1, E] float32, weights of the newest rows, whose windows are not complete


jax.tree_util.register_dataclass(IndexState, ["sampler", "cursor", "pending"], [])


class Index(NamedTuple):
    """Pure functions over an `IndexState`."""

    init: Callable[..., IndexState]
    """init(**hyper-parameters of the sampler)"""

    insert: Callable[..., IndexState]
    """insert(state, steps, priorities=None, drawable=None): the next `steps` rows hold new items.

    `priorities` [steps, E] float32, by default the highest of any item; `drawable` [steps, E] bool,
    by default all. Items can be drawn once the rows of their windows are there.
    """

    sample: Callable[..., Sample]
    """sample(state, key, beta=1.0): slots, with a Sample's batch left None."""

    update: Callable[..., IndexState]
    """update(state, sample, priorities [B], where=True): new priorities of items that were drawn.
    Left out are items whose slots hold others by now, priorities that are NaN, negative or
    infinite, and those where `where` (a bool or [B] bools) is False; the last of several for one
    item stays."""

    span: Callable[[IndexState], Span]
    """span(state): the slots that hold complete items."""

    sampler: Sampler
    ring: Ring
    batch_size: int
    checked: bool


def make_index(
    ring: Ring,
    sampler: Sampler,
    batch_size: int,
    *,
    is_stratified: bool = True,
    weights_over: str = "batch",
    checked: bool = False,
) -> Index:
    """An index over the ring's slots.

    Args:
      ring: sizes.
      sampler: how items are drawn.
      batch_size: items in a sample.
      is_stratified: draw one item from each of `batch_size` equal parts of the distribution, which
        has less variance than independent draws; samplers without an order of slots ignore it.
      weights_over: "batch": importance weights are divided by the largest of the sample; "buffer":
        by the largest that any item could have, at the price of a pass over all weights.
      checked: let `jax.experimental.checkify.checkify` report what compiled functions find wrong,
        at the price of slower calls.

    Raises:
      ValueError: if an argument is out of range.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if weights_over not in WEIGHTS_OVER:
        raise ValueError(f"weights_over must be one of {WEIGHTS_OVER}, got {weights_over!r}")
    most_steps = ring.rows - ring.reach + 1

    def init(**hyperparameters: ArrayLike) -> IndexState:
        pending = jnp.zeros((ring.window - 1, ring.num_envs), jnp.float32)
        return IndexState(sampler.init(**hyperparameters), rings.start(), pending)

    def insert(
        state: IndexState,
        steps: int,
        priorities: ArrayLike | None = None,
        drawable: Array | None = None,
    ) -> IndexState:
        if not 1 <= steps <= most_steps:
            raise ValueError(
                f"steps added at once must be from 1 to {most_steps} (the capacity for each "
                f"environment less what an item reaches over), got {steps}"
            )
        shape = steps, ring.num_envs
        highest = sampler.highest(state.sampler)
        highest = jnp.where(highest > 0, highest, np.float32(1))
        weights = jnp.broadcast_to(highest, shape)
        if priorities is not None:
            priorities = _as_priorities(priorities, shape)
            given = sound_priorities(priorities, checked) & sampler.prioritised
            weights = jnp.where(given, sampler.scale(state.sampler, priorities), weights)
        if drawable is not None:
            weights = jnp.where(drawable, weights, np.float32(0))
        line = jnp.concatenate([state.pending, weights])
        closed = jnp.zeros((ring.reach - 1, ring.num_envs), jnp.float32)
        changed = jnp.concatenate([line[:steps], closed]).reshape(-1)
        row = state.cursor.row - np.int32(ring.window - 1)
        row = jnp.where(row < 0, row + np.int32(ring.rows), row)
        return IndexState(
            sampler.assign_range(state.sampler, row * np.int32(ring.num_envs), changed),
            rings.advance(ring, state.cursor, steps),
            line[steps:],
        )

    def span(state: IndexState) -> Span:
        return Span(*rings.drawable(ring, state.cursor))

    def sample(state: IndexState, key: Array, beta: ArrayLike = 1.0) -> Sample:
        where = span(state)
        message = "sample needs at least one complete item, got an empty memory"
        require(where.size > 0, message, checked)
        words = jax.random.bits(key, (1 + sampler.num_words, batch_size))
        positions = stratified(words[0]) if is_stratified else uniform(words[0])
        drawn = sampler.draw(state.sampler, where, positions, words[1:])
        # Computed once, whoever uses it: a second reading of the weights after an update has begun
        # would make XLA copy them.
        slots, probabilities = jax.lax.optimization_barrier(drawn)
        weights = importance_weights(probabilities, beta, least_probability(state, where))
        generations = rings.generations(ring, state.cursor, slots)
        return Sample(None, slots, probabilities, weights, generations)

    def least_probability(state: IndexState, where: Span) -> Array | None:
        return sampler.least(state.sampler, where) if weights_over == "buffer" else None

    def update(
        state: IndexState, sample: Sample, priorities: ArrayLike, where: ArrayLike = True
    ) -> IndexState:
        priorities = _as_priorities(priorities, sample.indices.shape)
        sound = sound_priorities(priorities, checked)
        if not sampler.prioritised:
            return state
        current = rings.current(ring, state.cursor, sample.indices, sample.generations)
        # That the probability is positive is also what keeps the tree in place: without a reading
        # of it here, XLA would copy the tree to read it from.
        keep = where & sound & current & (sample.probabilities > 0)
        slots = jnp.where(keep, sample.indices, np.int32(-1))
        weights = sampler.scale(state.sampler, jnp.where(keep, priorities, np.float32(0)))
        return dataclasses.replace(state, sampler=sampler.assign(state.sampler, slots, weights))

    return Index(init, insert, sample, update, span, sampler, ring, batch_size, checked)


def importance_weights(probabilities: Array, beta: ArrayLike, least: Array | None = None) -> Array:
    """(N p)^-beta over its maximum, so N does not matter; 0 where the probability is 0.

    Args:
      probabilities: [B] float32.
      beta: 0: no correction, 1: full correction.
      least: the smallest probability that the maximum is over; that of the batch if None.

    Reference: Schaul et al., "Prioritized experience replay", ICLR 2016, section 3.4.
    """
    positive = probabilities > 0
    safe = jnp.where(positive, probabilities, np.float32(np.inf))
    least = jnp.min(safe) if least is None else least
    ratio = jnp.minimum(jnp.where(positive, least / safe, np.float32(0)), 1)  # but for rounding
    return jnp.where(positive, ratio ** jnp.asarray(beta, jnp.float32), np.float32(0))


def _as_priorities(priorities: ArrayLike, shape: tuple[int, ...]) -> Array:
    if np.shape(priorities) != shape:
        raise ValueError(f"priorities must have shape {shape}, got {np.shape(priorities)}")
    if known(priorities):
        priorities = np.asarray(priorities)
    return jnp.asarray(priorities, jnp.float32)
