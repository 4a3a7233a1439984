"""The contract of an agent: what acts on observations and learns from batches."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax

from accel_rl.agents.hyperparameters import Limits
from accel_rl.types import Array, Batch, Space


@dataclasses.dataclass(frozen=True)
class Learned:
    """What a step of learning found; a pytree."""

    td_error: Array  # [B] float32, of each item before the step; priorities are made of them
    metrics: dict[str, Array]  # [] float32 each


jax.tree_util.register_dataclass(Learned, ["td_error", "metrics"], [])


class Agent(NamedTuple):
    """Pure functions over an agent's state, for jit, vmap and scan.

    E environments act at once; B items are learned from at once.
    """

    init: Callable[..., Any]
    """init(key, **hyper-parameters): state. Every hyper-parameter is a leaf of the state, so that
    `vmap` over values of one sweeps it; names and limits are in `hyperparameters`."""

    policy: Callable[[Any], Any]
    """policy(state): what acting needs, a small pytree; the state keeps its own."""

    act: Callable[..., tuple[Array, Any]]
    """act(policy, memory, observation [E, ...], key, step, explore=True): actions [E, ...] of the
    action space, and the new memory. `step` (int32) counts the steps of all environments so far,
    for schedules; without `explore` (static) actions are the policy's best."""

    learn: Callable[[Any, Batch, Array, Array], tuple[Any, Learned]]
    """learn(state, batch, weights [B], key): the next state, and `Learned`. `weights` are those of
    importance, 0 for what must be left out. Targets are reward + discount * value: the batch's
    discount holds gamma already."""

    td_error: Callable[[Any, Batch, Array], Array]
    """td_error(critics, batch, key): [B] float32, without learning: initial priorities for who
    acts."""

    critics: Callable[[Any], Any]
    """critics(state): the networks that `td_error` reads, a pytree."""

    memory: Callable[[int], Any]
    """memory(num_envs): what acting remembers from step to step, leaves [E, ...], as it is at the
    start of an episode; () if nothing."""

    observation_space: Space
    action_space: Space

    hyperparameters: Mapping[str, Limits]
    """What `init` accepts."""

    needs_next_action: bool = False
    """Whether `learn` reads the next action actually executed, as `batch.extras`."""
