"""State of a training program, sums over a segment, and the keys of an iteration."""

import dataclasses
from typing import NamedTuple

import jax

from accel_rl.train.collection import ActorState, Episodes
from accel_rl.types import Array, PyTree


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
    hyper: dict[str, Array]  # [] float32 each


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SegmentSums:
    """Sums over the iterations of a segment; a pytree."""

    episodes: Episodes
    updates: Array  # [] int32
    learned: dict[str, Array]  # [] float32 each, the agent's metrics


class Keys(NamedTuple):
    """PRNG keys of one iteration, a function of the training key and the iteration number."""

    collect: Array  # [rollout, 1 + E]
    sample: Array  # [updates]
    learn: Array  # [updates]
