"""Trajectory buffers over an index and a store, which flat and item buffers specialise.

An item is a sequence of L steps. Its index is that of flashbax: with B batch elements and items at
every `period`-th of T steps, item i of batch element b has the index b * (T // period) + i. Slots
of the store are time-major.
"""

import dataclasses
import functools
import operator
import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole, within
from accel_rl.control_flow import order_after
from accel_rl.replay.flashbax.containers import (
    ExperiencePair,
    PrioritisedTrajectoryBuffer,
    PrioritisedTrajectoryBufferSample,
    PrioritisedTrajectoryBufferState,
    PrioritisedTransitionSample,
    TrajectoryBuffer,
    TrajectoryBufferSample,
    TrajectoryBufferState,
    TransitionSample,
)
from accel_rl.replay.index import as_priorities, make_index
from accel_rl.replay.prioritised import prioritised
from accel_rl.replay.replay import Added, Replay, ReplayState, compose
from accel_rl.replay.ring import Ring, generations
from accel_rl.replay.sampler import MakeSampler, Sampler, Span
from accel_rl.replay.store import StoreState, describe, make_store
from accel_rl.replay.uniform import uniform
from accel_rl.replay.validation import sound_priorities
from accel_rl.types import Array, ArrayLike, PyTree, Sample


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of a trajectory buffer.

    Raises:
      ValueError: if a size is out of range, or the time axis is too short.
    """

    add_batch_size: int  # B
    sample_batch_size: int
    sample_sequence_length: int  # L
    period: int
    min_length_time_axis: int
    length: int  # T

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            least = 0 if field.name == "min_length_time_axis" else 1
            whole(field.name, getattr(self, field.name), least)
        if self.least_steps > self.length:
            raise ValueError(
                "sample_sequence_length and min_length_time_axis must be at most the length of the "
                f"time axis, {self.length}, got {self.least_steps}"
            )
        unused = self.period - self.sample_sequence_length
        if unused > 0:
            warnings.warn(
                f"period {self.period} leaves {unused} steps between sequences of "
                f"{self.sample_sequence_length}, which are never sampled",
                stacklevel=4,
            )

    @property
    def least_steps(self) -> int:
        """Steps on the time axis required to sample."""
        return max(self.min_length_time_axis, self.sample_sequence_length)


class Form(NamedTuple):
    """Axes of added batches, and contents of samples."""

    has_batch_axis: bool = True
    has_time_axis: bool = True
    samples: str = "sequences"  # or "pairs" of steps, or single "items"


def make_uniform(form: Form, sizes: Sizes) -> TrajectoryBuffer:
    """Make a buffer that samples uniformly the sequences at every period from the oldest step."""
    # Independent draws, in random order: users of flashbax may split batches.
    of = _replay_factory(sizes, functools.partial(_every, sizes.period), 1, stratified=False)

    def init(experience: PyTree) -> TrajectoryBufferState:
        return TrajectoryBufferState(of(experience).init(), sizes.add_batch_size)

    def add(state: TrajectoryBufferState, batch: PyTree) -> TrajectoryBufferState:
        replay = of(step_of(state.replay.store))
        rows = as_rows(form, sizes.length, replay.parts[1].example, batch)
        return dataclasses.replace(state, replay=_append(replay, state.replay, rows))

    def sample(state: TrajectoryBufferState, key: Array) -> PyTree:
        drawn = of(step_of(state.replay.store)).sample(state.replay, key)
        make = TransitionSample if form.samples == "pairs" else TrajectoryBufferSample
        return make(_experience(form, drawn))

    return TrajectoryBuffer(init, add, sample, functools.partial(_can_sample, sizes))


def make_prioritised(form: Form, sizes: Sizes, exponent: float) -> PrioritisedTrajectoryBuffer:
    """Make a buffer that samples in proportion to priority^exponent.

    Sequences begin at every period from the first step ever added; the time axis is a multiple of
    the period.
    """
    within("priority_exponent", exponent, "[0, 1]")
    batch, period = np.int32(sizes.add_batch_size), np.int32(sizes.period)
    per_element = np.int32(sizes.length // sizes.period)  # items of a batch element

    of = _replay_factory(sizes, prioritised(), sizes.period, stratified=True)

    def init(experience: PyTree) -> PrioritisedTrajectoryBufferState:
        empty = of(experience).init(alpha=exponent)
        return PrioritisedTrajectoryBufferState(empty, sizes.add_batch_size, jnp.float32(1))

    def add(state: PrioritisedTrajectoryBufferState, items: PyTree) -> PyTree:
        replay = of(step_of(state.replay.store))
        rows = as_rows(form, sizes.length, replay.parts[1].example, items)
        added = _append(replay, state.replay, rows, state.max_priority)
        return dataclasses.replace(state, replay=added)

    def sample(state: PrioritisedTrajectoryBufferState, key: Array) -> PyTree:
        drawn = of(step_of(state.replay.store)).sample(state.replay, key)
        row, element = jnp.divmod(drawn.indices, batch)
        # Ordered after the probabilities: `set_priorities`, which takes the indices, then writes
        # the sums after they were read, and XLA does not copy them.
        indices = order_after(element * per_element + row // period, drawn.probabilities)
        make = (
            PrioritisedTransitionSample
            if form.samples == "pairs"
            else PrioritisedTrajectoryBufferSample
        )
        return make(_experience(form, drawn), indices, drawn.probabilities)

    def set_priorities(
        state: PrioritisedTrajectoryBufferState, indices: ArrayLike, priorities: ArrayLike
    ) -> PyTree:
        replay = of(step_of(state.replay.store))
        indices = jnp.asarray(indices, jnp.int32)
        priorities = as_priorities(priorities, indices.shape)
        element, item = jnp.divmod(indices, per_element)
        inside = (indices >= 0) & (indices < batch * per_element)
        slots = jnp.where(inside, item * period * batch + element, np.int32(-1))
        ring, cursor = replay.parts[0].ring, state.replay.index.cursor
        ones = jnp.ones(slots.shape, jnp.float32)
        drawn = Sample(None, slots, ones, ones, generations(ring, cursor, slots))
        largest = jnp.max(jnp.where(sound_priorities(priorities), priorities, np.float32(0)))
        return dataclasses.replace(
            state,
            replay=replay.update(state.replay, drawn, priorities),
            max_priority=jnp.maximum(state.max_priority, largest),
        )

    can_sample = functools.partial(_can_sample, sizes)
    return PrioritisedTrajectoryBuffer(init, add, sample, can_sample, set_priorities)


def step_of(state: StoreState) -> PyTree:
    """Return the shapes and dtypes of a stored step."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), state.data)


def as_rows(form: Form, length: int, example: PyTree, batch: PyTree) -> PyTree:
    """Check a batch and return it time-major, leaves [steps, B, *leaf]."""
    axes = form.has_batch_axis + form.has_time_axis
    leading = {np.shape(x)[:axes] for x in jax.tree.leaves(batch)}
    if len(leading) != 1:
        raise ValueError(f"leaves of batch must have the same first axes, got {leading}")

    def leaf(x: Array, spec: jax.ShapeDtypeStruct) -> Array:
        x = jnp.asarray(x)
        if x.shape[axes:] != spec.shape or x.ndim != axes + len(spec.shape):
            raise ValueError(f"leaves of batch must be [{axes} axes, *{spec.shape}], got {x.shape}")
        if x.dtype != spec.dtype:
            raise TypeError(f"leaves of batch must be {spec.dtype}, got {x.dtype}")
        if form.samples == "items":  # elements of a batch are steps of one time axis
            return jnp.reshape(x, (-1, 1, *spec.shape))
        x = x if form.has_batch_axis else x[None]
        x = x if form.has_time_axis else x[:, None]
        return jnp.swapaxes(x, 0, 1)

    rows = jax.tree.map(leaf, batch, example)
    steps = jax.tree.leaves(rows)[0].shape[0]
    if steps > length:
        raise ValueError(f"batch must have at most {length} steps, got {steps}")
    return rows


def _replay_factory(
    sizes: Sizes, make_sampler: MakeSampler, period: int, *, stratified: bool
) -> Callable[[PyTree], Replay]:
    """Return a function from a step, of which only shapes and dtypes matter, to its replay buffer.

    Steps are known only when a state is made, after the functions over it.
    """

    @functools.cache
    def cached(structure: object, leaves: tuple[jax.ShapeDtypeStruct, ...]) -> Replay:
        store = make_store(
            jax.tree.unflatten(structure, leaves),
            sizes.length * sizes.add_batch_size,
            num_envs=sizes.add_batch_size,
            sequence_length=sizes.sample_sequence_length,
            sequence_period=period,
        )
        sampler = make_sampler(store.ring, store.selective)
        index = make_index(store.ring, sampler, sizes.sample_batch_size, stratified=stratified)
        return compose(index, store)

    def of(step: PyTree) -> Replay:
        leaves, structure = jax.tree.flatten(describe(step))
        return cached(structure, tuple(leaves))

    return of


def _append(
    replay: Replay, state: ReplayState, rows: PyTree, priority: Array | None = None
) -> ReplayState:
    """Add rows, all with one priority."""
    ring = replay.parts[0].ring
    items, added = replay.apart.rows(state.store, rows)
    index = state.index
    if priority is not None and index.pending is not None:
        # A sequence that is complete only now gets the priority of now, as in flashbax.
        scaled = replay.parts[0].sampler.scale(index.sampler, priority)
        pending = jnp.where(index.pending > 0, scaled, index.pending)
        index = dataclasses.replace(index, pending=pending)
    # An index takes at most as many rows at once as begin complete items.
    most = ring.rows - ring.reach + 1
    for start in range(0, added.steps, most):
        steps = min(most, added.steps - start)
        given = None if priority is None else jnp.broadcast_to(priority, (steps, ring.num_envs))
        drawable = None if added.drawable is None else added.drawable[start : start + steps]
        index = replay.apart.insert(index, Added(steps, given, drawable))
    return ReplayState(index, replay.apart.write(state.store, items, added.steps))


def _experience(form: Form, drawn: Sample) -> PyTree:
    steps = drawn.batch.steps
    if form.samples == "sequences":
        return steps
    first, *second = (
        jax.tree.map(operator.itemgetter((slice(None), k)), steps)
        for k in range(2 if form.samples == "pairs" else 1)
    )
    return ExperiencePair(first, *second) if second else first


def _can_sample(sizes: Sizes, state: TrajectoryBufferState) -> Array:
    return state.is_full | (state.current_index >= sizes.least_steps)


def _every(period: int, ring: Ring, selective: bool) -> Sampler:
    """Return a uniform sampler of the rows at every period from the oldest."""
    each, envs = uniform()(ring, selective), np.int32(ring.num_envs)

    def draw(state: PyTree, span: Span, positions: Array, words: Array) -> tuple[Array, Array]:
        starts = (span.size // envs + np.int32(period - 1)) // np.int32(period)
        drawn, probabilities = each.draw(state, Span(jnp.int32(0), starts * envs), positions, words)
        row, env = jnp.divmod(drawn, envs)
        return span.slot(row * np.int32(period) * envs + env, ring.capacity), probabilities

    return each._replace(draw=draw)
