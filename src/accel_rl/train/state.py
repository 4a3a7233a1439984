"""What a training goes on from, what a segment of it sums up, and what an iteration draws from."""

import dataclasses
from typing import Any, NamedTuple

import jax

from accel_rl.train.collection import ActorState, Episodes
from accel_rl.types import Array


@dataclasses.dataclass(frozen=True)
class TrainState:
    """All that a training goes on from; a pytree. Save it whole to resume exactly."""

    agent: Any
    replay: Any  # None where the memory is a port
    actor: ActorState
    policies: Any  # the policies that are not yet old enough to act, leaves [policy_lag, ...]
    late: Any  # (Sample, priorities, whether there are any) not yet applied, [priority_lag, ...]
    key: Array  # [2] uint32, from which the keys of each iteration are derived
    iteration: Array  # [] int32
    hyper: dict[str, Array]  # [] float32 each


jax.tree_util.register_dataclass(
    TrainState,
    ["agent", "replay", "actor", "policies", "late", "key", "iteration", "hyper"],
    [],
)


@dataclasses.dataclass(frozen=True)
class Totals:
    """Sums over a segment; a pytree."""

    episodes: Episodes
    updates: Array  # [] int32
    learned: dict[str, Array]  # [] float32 each, the agent's metrics


jax.tree_util.register_dataclass(Totals, ["episodes", "updates", "learned"], [])


class Keys(NamedTuple):
    """Random keys of an iteration; functions of the training's key and its number alone."""

    collect: Array  # [rollout, 1 + E]
    sample: Array  # [updates]
    learn: Array  # [updates]
