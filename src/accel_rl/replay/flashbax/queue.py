"""First-in, first-out queue of trajectories over a store."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.control_flow import order_after
from accel_rl.replay import ring as rings
from accel_rl.replay.flashbax.containers import batch_major
from accel_rl.replay.flashbax.trajectory import Form, Sizes, as_rows, step_of
from accel_rl.replay.store import Store, StoreState, make_store
from accel_rl.types import Array, PyTree


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrajectoryQueueState:
    """State of a queue; a pytree."""

    store: StoreState
    read_index: Array  # int32, position on the time axis of the next step to read
    is_full: Array  # bool
    add_batch_size: int = dataclasses.field(metadata={"static": True})

    @property
    def experience(self) -> PyTree:
        """Copy of the stored steps, leaves [B, T, *leaf], by position in the ring."""
        return batch_major(self.store.data, self.add_batch_size, np.ndim(self.read_index))

    @property
    def write_index(self) -> Array:
        """Position on the time axis of the next step to write, int32."""
        return self.store.cursor.row


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrajectoryQueueSample:
    """Steps read from a queue, leaves [B, L, *leaf]; a pytree."""

    experience: PyTree


@dataclasses.dataclass(frozen=True)
class TrajectoryQueue:
    """Pure functions over a `TrajectoryQueueState`."""

    init: Callable[[PyTree], TrajectoryQueueState]
    """init(step): an empty queue for steps like this one, without batch and time axes."""

    add: Callable[[TrajectoryQueueState, PyTree], TrajectoryQueueState]
    """add(state, batch): append steps, leaves [B, steps, *leaf]."""

    sample: Callable[[TrajectoryQueueState], tuple[TrajectoryQueueState, TrajectoryQueueSample]]
    """sample(state): remove and return the oldest L steps."""

    can_sample: Callable[[TrajectoryQueueState], Array]
    """can_sample(state): True if the queue holds L steps, bool."""

    can_add: Callable[[TrajectoryQueueState], Array]
    """can_add(state): True if `add_sequence_length` more steps fit, bool."""


def make_trajectory_queue(
    max_length_time_axis: int,
    add_batch_size: int,
    add_sequence_length: int,
    sample_sequence_length: int,
    max_size: int | None = None,
) -> TrajectoryQueue:
    """Make a queue that returns steps once, in the order in which they were added.

    Args:
      max_length_time_axis: steps stored for each element of the batch axis, T.
      add_batch_size: sequences added and read together, B.
      add_sequence_length: steps that `can_add` makes room for.
      sample_sequence_length: steps of a sample, L.
      max_size: steps stored over all of the batch axis; replaces `max_length_time_axis`.
    """
    length = max_length_time_axis if max_size is None else max_size // add_batch_size
    whole("add_sequence_length", add_sequence_length, 1)
    sizes = Sizes(add_batch_size, add_batch_size, sample_sequence_length, 1, 0, length)

    def store_of(step: PyTree) -> Store:
        return make_store(
            step,
            length * add_batch_size,
            num_envs=add_batch_size,
            sequence_length=sizes.sample_sequence_length,
        )

    def init(experience: PyTree) -> TrajectoryQueueState:
        state = store_of(experience).init()
        return TrajectoryQueueState(state, jnp.int32(0), jnp.bool_(False), add_batch_size)

    def add(state: TrajectoryQueueState, batch: PyTree) -> TrajectoryQueueState:
        store = store_of(step_of(state.store))
        items, steps = store.rows(as_rows(Form(), length, store.example, batch))
        written = store.write(state.store, items, steps)
        is_full = written.cursor.row == state.read_index
        return dataclasses.replace(state, store=written, is_full=is_full)

    def sample(
        state: TrajectoryQueueState,
    ) -> tuple[TrajectoryQueueState, TrajectoryQueueSample]:
        store = store_of(step_of(state.store))
        elements = jnp.arange(add_batch_size, dtype=jnp.int32)
        slots = state.read_index * np.int32(add_batch_size) + elements
        read = store.gather(state.store, slots).steps
        # The next write is ordered after the read, so that XLA copies nothing.
        cursor = state.store.cursor
        row = cursor.row
        for leaf in jax.tree.leaves(read):
            row = order_after(row, leaf)
        cursor = dataclasses.replace(cursor, row=row)
        state = TrajectoryQueueState(
            dataclasses.replace(state.store, cursor=cursor),
            rings.wrap(state.read_index + np.int32(sample_sequence_length), length),
            jnp.zeros_like(state.is_full),
            add_batch_size,
        )
        return state, TrajectoryQueueSample(read)

    def unread(state: TrajectoryQueueState) -> Array:
        ahead = state.write_index - state.read_index
        ahead = jnp.where(ahead < 0, ahead + np.int32(length), ahead)
        return jnp.where(state.is_full, np.int32(length), ahead)

    return TrajectoryQueue(
        init,
        add,
        sample,
        lambda state: unread(state) >= sample_sequence_length,
        lambda state: unread(state) <= length - add_sequence_length,
    )
