"""States, samples and buffers. B is `add_batch_size`, T the time axis, L the sequence length."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.replay.replay import ReplayState
from accel_rl.types import Array, ArrayLike, PyTree


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrajectoryBufferState:
    """State of a buffer; a pytree."""

    replay: ReplayState
    add_batch_size: int = dataclasses.field(metadata={"static": True})

    @property
    def experience(self) -> PyTree:
        """Copy of the stored steps, leaves [B, T, *leaf], by position in the ring."""
        store = self.replay.store
        return batch_major(store.data, self.add_batch_size, np.ndim(store.cursor.row))

    @property
    def current_index(self) -> Array:
        """Position on the time axis of the next step, int32."""
        return self.replay.store.cursor.row

    @property
    def is_full(self) -> Array:
        """True once every position was written, bool."""
        return self.replay.store.cursor.laps > 0


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PrioritisedTrajectoryBufferState(TrajectoryBufferState):
    """State of a prioritised buffer; a pytree."""

    max_priority: Array  # float32, largest priority ever set, at least 1


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrajectoryBufferSample:
    """Sampled sequences, leaves [batch, L, *leaf], or items [batch, *leaf]; a pytree."""

    experience: PyTree


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PrioritisedTrajectoryBufferSample(TrajectoryBufferSample):
    """Sampled sequences or items with their indices and probabilities; a pytree."""

    indices: Array  # [batch] int32
    probabilities: Array  # [batch] float32


class ExperiencePair(NamedTuple):
    """Two consecutive steps, leaves [batch, *leaf]."""

    first: PyTree
    second: PyTree


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TransitionSample:
    """Sampled transitions; a pytree."""

    experience: ExperiencePair


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PrioritisedTransitionSample(TransitionSample):
    """Sampled transitions with their indices and probabilities; a pytree."""

    indices: Array  # [batch] int32
    probabilities: Array  # [batch] float32


@dataclasses.dataclass(frozen=True)
class TrajectoryBuffer:
    """Pure functions over a `TrajectoryBufferState`."""

    init: Callable[[PyTree], PyTree]
    """init(step): an empty buffer for steps like this one, without batch and time axes."""

    add: Callable[[PyTree, PyTree], PyTree]
    """add(state, batch): append steps, leaves [B, steps, *leaf]; flat and item buffers leave out
    the axes that they were made without."""

    sample: Callable[[PyTree, Array], PyTree]
    """sample(state, key)"""

    can_sample: Callable[[PyTree], Array]
    """can_sample(state): True once the time axis holds the minimum length, bool."""

    def replace(self, **functions: Callable[..., PyTree]) -> Self:
        """Return the buffer with other functions, such as compiled ones."""
        return dataclasses.replace(self, **functions)


@dataclasses.dataclass(frozen=True)
class PrioritisedTrajectoryBuffer(TrajectoryBuffer):
    """Pure functions over a `PrioritisedTrajectoryBufferState`."""

    set_priorities: Callable[[PyTree, Array, ArrayLike], PyTree]
    """set_priorities(state, indices [n], priorities [n]): the last of several priorities for one
    item is kept."""


def batch_major(data: PyTree, batch: int, mapped: int) -> PyTree:
    """Return stored steps [T * B, *leaf] as [B, T, *leaf], after `mapped` axes of vmap."""

    def leaf(x: Array) -> Array:
        shape = *x.shape[:mapped], -1, batch, *x.shape[mapped + 1 :]
        return jnp.swapaxes(x.reshape(shape), mapped, mapped + 1)

    return jax.tree.map(leaf, data)
