"""State of a training program with its fifos, sums over a segment, and keys of an iteration."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from accel_rl.train.collection import ActorState, Episodes
from accel_rl.types import Array, PyTree, Sample


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState:
    """Everything needed to continue training: save it whole to resume exactly. A pytree."""

    agent: PyTree
    replay: PyTree  # None where the buffer is a replay port
    actor: ActorState
    delayed_policies: PyTree  # fifo of the newest policies, leaves [policy_lag, ...]
    delayed_priorities: PyTree  # fifo of (Sample, priorities, valid), leaves [priority_lag, ...]
    key: Array  # [2] uint32, from which each iteration derives its keys
    iteration: Array  # [] int32
    value_limit: Array  # [] float32, most that rewards and discounts sampled so far allow
    hyper: dict[str, Array]  # [] float32 each


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SegmentSums:
    """Sums over the iterations of a segment; a pytree."""

    episodes: Episodes
    updates: Array  # [] int32
    learned: dict[str, Array]  # [] float32 each, the agent's metrics
    value_limit: Array  # [] float32, not a sum: the maximum, from the start of the training


class Keys(NamedTuple):
    """PRNG keys of one iteration, a function of the training key and the iteration number."""

    collect: Array  # [rollout, 1 + E]
    sample: Array  # [updates]
    learn: Array  # [updates]


def fill_fifo(item: PyTree, length: int) -> PyTree:
    """Fill a fifo with `length` copies of an item, leaves [length, ...]; None for length 0."""
    if length == 0:
        return None
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (length, *jnp.shape(leaf))), item)


def oldest_of(fifo: PyTree, newest: PyTree) -> PyTree:
    """Return the next item out, which is `newest` for a fifo of length 0."""
    return newest if fifo is None else jax.tree.map(lambda leaf: leaf[0], fifo)


def push_into(fifo: PyTree, item: PyTree) -> PyTree:
    """Drop the oldest item and append a new one."""
    if fifo is None:
        return None
    return jax.tree.map(
        lambda leaf, new: jnp.concatenate([leaf[1:], jnp.asarray(new)[None]]), fifo, item
    )


def without_batch(sample: Sample) -> Sample:
    """Drop the transitions of a sample: a priority update does not read them."""
    return dataclasses.replace(sample, batch=None)
