"""Interface of an agent: pure functions for acting and learning."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax

from accel_rl.agents.hyperparameters import Limits
from accel_rl.types import Array, Batch, PyTree, Space


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Learned:
    """TD errors and metrics of one update; a pytree."""

    td_error: Array  # [B] float32, before the update; the source of new priorities
    metrics: dict[str, Array]  # [] float32 each


class Agent(NamedTuple):
    """Pure functions over an agent's state, for jit, vmap and scan.

    E is the number of environments that act at once, B the batch size.
    """

    init: Callable[..., PyTree]
    """init(key, **hyper-parameters): state. Every hyper-parameter is a leaf of the state, so `vmap`
    over its values sweeps it. Names and limits are in `hyperparameters`."""

    policy: Callable[[PyTree], PyTree]
    """policy(state): the part of the state that `act` reads, a small pytree."""

    act: Callable[..., tuple[Array, PyTree]]
    """act(policy, memory, observation [E, ...], key, step, explore=True): actions [E, ...] of the
    action space, and the new memory. `step` (int32) counts the steps of all environments so far,
    for exploration schedules. With `explore=False` (static) actions are greedy."""

    learn: Callable[[PyTree, Batch, Array, Array], tuple[PyTree, Learned]]
    """learn(state, batch, weights [B], key): the next state, and `Learned`. `weights` are
    importance-sampling weights; 0 excludes an item. Targets are reward + discount * value: the
    batch's discount already includes gamma."""

    td_error: Callable[[PyTree, Batch, Array], Array]
    """td_error(critics, batch, key): TD errors [B] float32 without an update, from which actors
    compute initial priorities."""

    critics: Callable[[PyTree], PyTree]
    """critics(state): the networks that `td_error` reads, a pytree."""

    memory: Callable[[int], PyTree]
    """memory(num_envs): state of acting at the start of an episode, carried from step to step,
    leaves [E, ...]; () for an agent without one."""

    observation_space: Space
    action_space: Space

    hyperparameters: Mapping[str, Limits]
    """Hyper-parameters that `init` accepts, by name."""

    needs_next_action: bool = False
    """True if `learn` reads the next executed action, as `batch.extras`."""

    def __repr__(self) -> str:
        names = ", ".join(self.hyperparameters)
        return f"Agent({self.observation_space}, {self.action_space}, hyperparameters: {names})"
