"""Index of a replay buffer: which slots hold items, their priorities, and sampling.

The index does not depend on the stored data, so it can be placed apart from the store: on another
device, or in another process.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import one_of, scalar_within, whole
from accel_rl.replay import ring as rings
from accel_rl.replay.random import positions_of, random_words
from accel_rl.replay.ring import Cursor, Ring
from accel_rl.replay.sampler import Sampler, Span
from accel_rl.replay.validation import known, require, sound_priorities
from accel_rl.types import Array, ArrayLike, PyTree, Sample

WEIGHTS_OVER = ("batch", "buffer")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class IndexState:
    """State of an index; a pytree. E environments, windows of w rows."""

    sampler: PyTree
    cursor: Cursor
    pending: Array | None  # [w - 1, E] float32, weights of the newest rows, whose windows are not
    # complete; None if w is 1


class Index(NamedTuple):
    """Pure functions over an `IndexState`."""

    init: Callable[..., IndexState]
    """init(**hyper-parameters of the sampler)"""

    insert: Callable[..., IndexState]
    """insert(state, steps, priorities=None, drawable=None): the next `steps` rows hold new items.

    `priorities` [steps, E] float32, by default the highest of any item; `drawable` [steps, E] bool,
    by default all True. Items can be drawn once the rows of their windows are inserted.
    """

    sample: Callable[..., Sample]
    """sample(state, key, beta=1.0): a `Sample` of slots, with its batch None."""

    update: Callable[..., IndexState]
    """update(state, sample, priorities [B], where=True): set new priorities of sampled items.
    Skipped are items that were overwritten since, NaN, negative or infinite priorities, and items
    where `where` (a bool or [B] bools) is False; the last of several priorities for one item is
    kept."""

    span: Callable[[IndexState], Span]
    """span(state): slots that hold complete items."""

    sampler: Sampler
    ring: Ring
    batch_size: int
    stratified: bool
    weights_over: str
    checked: bool


def make_index(
    ring: Ring,
    sampler: Sampler,
    batch_size: int,
    *,
    stratified: bool = True,
    weights_over: str = "batch",
    checked: bool = False,
) -> Index:
    """Make an index over the slots of a ring.

    Args:
      ring: sizes of the ring.
      sampler: draws items.
      batch_size: items in a sample.
      stratified: draw one item from each of `batch_size` equal parts of the distribution, which has
        less variance than independent draws; samplers that do not order slots ignore it.
      weights_over: "batch": importance-sampling weights are divided by the largest of the sample;
        "buffer": by the largest that any item could have, at the cost of a pass over all weights.
      checked: let `jax.experimental.checkify.checkify` report errors in compiled functions, at the
        cost of slower calls.
    """
    whole("batch_size", batch_size, 1)
    one_of("weights_over", weights_over, WEIGHTS_OVER)
    if weights_over == "buffer" and sampler.least is None:
        raise ValueError("weights_over must be 'batch': the sampler does not know its least likely")
    most_steps = ring.rows - ring.reach + 1

    def init(**hyperparameters: ArrayLike) -> IndexState:
        pending = None
        if ring.window > 1:
            pending = jnp.zeros((ring.window - 1, ring.num_envs), jnp.float32)
        return IndexState(sampler.init(**hyperparameters), rings.start(), pending)

    def insert(
        state: IndexState,
        steps: int,
        priorities: ArrayLike | None = None,
        drawable: Array | None = None,
    ) -> IndexState:
        whole("steps added at once", steps, 1, most_steps)
        shape = steps, ring.num_envs
        highest = sampler.highest(state.sampler)
        # The first items have no highest priority to start from.
        highest = jnp.where(highest > 0, highest, np.float32(1))
        weights = jnp.broadcast_to(highest, shape)
        if priorities is not None:
            priorities = as_priorities(priorities, shape)
            given = sound_priorities(priorities, checked) & sampler.prioritised
            weights = jnp.where(given, sampler.scale(state.sampler, priorities), weights)
        if drawable is not None:
            weights = jnp.where(drawable, weights, np.float32(0))
        # Rows whose windows are now complete get their weights. The next reach - 1 rows get 0:
        # the newest rows, with incomplete windows, and the oldest, with overwritten histories.
        line = weights if state.pending is None else jnp.concatenate([state.pending, weights])
        closed = jnp.zeros((ring.reach - 1, ring.num_envs), jnp.float32)
        changed = jnp.concatenate([line[:steps], closed]).reshape(-1)
        row = state.cursor.row - np.int32(ring.window - 1)
        row = jnp.where(row < 0, row + np.int32(ring.rows), row)
        return IndexState(
            sampler.assign_range(state.sampler, row * np.int32(ring.num_envs), changed),
            rings.advance(ring, state.cursor, steps),
            None if state.pending is None else line[steps:],
        )

    def span(state: IndexState) -> Span:
        return Span(*rings.span(ring, state.cursor))

    def sample(state: IndexState, key: Array, beta: ArrayLike = 1.0) -> Sample:
        where = span(state)
        message = "sample needs at least one complete item, got an empty buffer"
        require(where.size > 0, message, checked)
        words = random_words(key, 1 + sampler.num_words, batch_size)
        positions = positions_of(words[0], stratified)
        slots, probabilities = sampler.draw(state.sampler, where, positions, words[1:])
        weights = importance_weights(probabilities, beta, least_probability(state, where))
        generations = rings.generations(ring, state.cursor, slots)
        return Sample(None, slots, probabilities, weights, generations)

    def least_probability(state: IndexState, where: Span) -> Array | None:
        if weights_over == "batch" or sampler.least is None:
            return None
        return sampler.least(state.sampler, where)

    def update(
        state: IndexState, sample: Sample, priorities: ArrayLike, where: ArrayLike = True
    ) -> IndexState:
        import chex  # at the first trace, since it takes 0.1 s

        if not hasattr(sample, "generations"):
            raise TypeError(
                "update takes what sample returned, not its indices: update(state, sample, "
                f"priorities); got {type(sample).__name__}"
            )
        priorities = as_priorities(priorities, sample.indices.shape)
        chex.assert_type(where, bool)
        if np.ndim(where):
            chex.assert_equal_shape([where, sample.indices])
        sound = sound_priorities(priorities, checked)
        if not sampler.prioritised:
            return state
        current = rings.current(ring, state.cursor, sample.indices, sample.generations)
        # Testing the probabilities also keeps the tree in place: it orders the update after their
        # computation. Otherwise XLA would copy the tree to read them from.
        keep = where & sound & current & (sample.probabilities > 0)
        slots = jnp.where(keep, sample.indices, np.int32(-1))
        weights = sampler.scale(state.sampler, jnp.where(keep, priorities, np.float32(0)))
        return dataclasses.replace(state, sampler=sampler.assign(state.sampler, slots, weights))

    options = batch_size, stratified, weights_over, checked
    return Index(init, insert, sample, update, span, sampler, ring, *options)


def importance_weights(probabilities: Array, beta: ArrayLike, least: Array | None = None) -> Array:
    """Return importance-sampling weights (N p)^-beta over their maximum; 0 where p is 0.

    N cancels in the division.

    Args:
      probabilities: [B] float32.
      beta: 0: no correction, 1: full correction.
      least: smallest probability over which the maximum is taken; that of the batch if None.

    Reference: Schaul et al., "Prioritized experience replay", ICLR 2016, section 3.4.
    """
    beta = scalar_within("beta", beta, "[0, inf)")
    positive = probabilities > 0
    safe = jnp.where(positive, probabilities, np.float32(np.inf))
    least = jnp.min(safe) if least is None else least
    ratio = jnp.minimum(jnp.where(positive, least / safe, np.float32(0)), 1)  # but for rounding
    return jnp.where(positive, ratio**beta, np.float32(0))


def as_priorities(priorities: ArrayLike, shape: tuple[int, ...]) -> PyTree:
    """Return priorities as float32 [*shape], as NumPy if known, so that checks can read them."""
    if np.shape(priorities) != shape:
        raise ValueError(f"priorities must have shape {shape}, got {np.shape(priorities)}")
    if known(priorities):
        return np.asarray(priorities, np.float32)
    return jnp.asarray(priorities, jnp.float32)
