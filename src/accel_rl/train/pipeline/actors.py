"""Actors: step environments with a published policy, and compute initial priorities."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents import Agent
from accel_rl.agents.exploration import Exploration
from accel_rl.arguments import whole
from accel_rl.replay import n_step, td_priority
from accel_rl.train import collection
from accel_rl.train.collection import ActorState, Episodes
from accel_rl.train.pipeline.placement import Placement, place
from accel_rl.train.program import Program
from accel_rl.train.state import TrainState
from accel_rl.types import Array, ArrayLike, Batch, PyTree, Transition

CACHED = 16  # programs whose compiled functions are kept

# Iterations are int32, so no iteration folds these into a key.
_ACTOR_STREAM = np.uint32(3 << 30)
_RESTART_STREAM = np.uint32(5 << 29)


class Published(NamedTuple):
    """Part of the agent that actors read; a pytree that is never donated."""

    policy: PyTree
    critics: PyTree  # None unless actors compute initial priorities


class Version(NamedTuple):
    """Published policy and the number of updates it has seen."""

    published: Published
    updates: int


class Rollout(NamedTuple):
    """Transitions that an actor collects in one iteration."""

    transitions: Transition  # leaves [E, ...], or [rollout, E, ...] if rollout is above 1
    priorities: Array | None  # of the transitions, with the same leading axes
    episodes: Episodes  # NumPy scalars
    updates: int  # seen by the policy


def host_episodes(count: PyTree, episode_return: PyTree, episode_length: PyTree) -> Episodes:
    """Make sums over episodes of NumPy scalars, or of arrays [seeds]."""
    numbers: PyTree = np.int32(count), np.float32(episode_return), np.float32(episode_length)
    return Episodes(*numbers)


class Actor(Protocol):
    """Owner of a share of the environments."""

    def collect(self, version: Version, iteration: int) -> Rollout:
        """Step the environments for one iteration; return once the transitions are computed."""

    def restart(self, version: Version) -> None:
        """Start new episodes, with fresh keys, from whatever state the actor is in."""

    @property
    def state(self) -> ActorState:
        """Present state of the environments."""


@dataclasses.dataclass(frozen=True)
class ActorConfig:
    """Static configuration shared by the actors of a program."""

    program: Program
    actors: int  # that share the environments
    priority_steps: int  # n of the n-step targets of initial priorities; 0: none are computed
    exploration: Exploration | None

    def __post_init__(self) -> None:
        """Raise ValueError unless the actors have equal shares of the environments."""
        whole("actor_priorities", self.priority_steps, 0)
        num_envs = self.program.schedule.num_envs
        if num_envs % whole("num_actors", self.actors, 1):
            raise ValueError(f"num_actors must divide num_envs, {num_envs}, got {self.actors}")

    @property
    def num_envs(self) -> int:
        """Environments of each actor."""
        return self.program.schedule.num_envs // self.actors

    def keys(self, key: Array, iteration: Array) -> Array:
        """Derive an actor's keys of an iteration, [rollout, 1 + its environments]."""
        plan = dataclasses.replace(self.program.schedule, num_envs=self.num_envs)
        return dataclasses.replace(self.program, schedule=plan).keys(key, iteration).collect

    def policy(self, published: Published, first: Array) -> PyTree:
        """Return the policy of the actor whose first environment has index `first`."""
        if self.exploration is None:
            return published.policy
        indices = first + jnp.arange(self.num_envs, dtype=jnp.int32)
        return self.exploration(published.policy, indices)

    def priorities(
        self, published: Published, transitions: Transition, key: Array, gamma: Array
    ) -> Array | None:
        """Return initial priorities, [E] or [rollout, E]; None where the buffer assigns them."""
        if not self.priority_steps:
            return None
        single = self.program.schedule.rollout == 1
        rows = jax.tree.map(lambda leaf: leaf[None], transitions) if single else transitions
        key = jax.random.fold_in(key, 1)  # the key itself has chosen the actions
        found = initial_priorities(
            self.program.agent, published.critics, rows, self.priority_steps, gamma, key
        )
        return found[0] if single else found


@dataclasses.dataclass(frozen=True)
class ActorSlot:
    """Index, device and keys of one actor."""

    config: ActorConfig
    number: int
    device: jax.Device
    key: ArrayLike  # [2] uint32, of the training
    gamma: ArrayLike

    @classmethod
    def of(
        cls, config: ActorConfig, number: int, placement: Placement, state: TrainState
    ) -> "ActorSlot":
        """Return an actor's slot in a training that starts from a state."""
        key, gamma = jax.device_get((state.key, state.hyper["gamma"]))
        return cls(config, number, placement.actor(number), key, np.float32(gamma))

    def share(self, tree: PyTree) -> PyTree:
        """Return the actor's environments of leaves [E, ...]."""
        own = slice(int(self.first), int(self.first) + self.config.num_envs)
        return jax.tree.map(lambda leaf: leaf[own], tree)

    @property
    def first(self) -> np.int32:
        """Index of the actor's first environment."""
        return np.int32(self.number * self.config.num_envs)

    def own_key(self, restarts: int) -> Array:
        """Return this actor's key after `restarts` restarts, [2] uint32, on its device.

        A single actor that was never restarted has the key of the training, as the fused executor.
        """
        key = self.shared_key(restarts)
        if self.config.actors > 1:
            folded = jax.random.fold_in(
                jax.random.wrap_key_data(key), _ACTOR_STREAM + np.uint32(self.first)
            )
            key = jax.random.key_data(folded)
        return jax.device_put(key, self.device)

    def shared_key(self, restarts: int) -> Array:
        """Return the key of all actors after `restarts` restarts, [2] uint32."""
        key = jnp.asarray(self.key)
        if restarts:
            folded = jax.random.fold_in(
                jax.random.wrap_key_data(key), _RESTART_STREAM + np.uint32(restarts)
            )
            key = jax.random.key_data(folded)
        return key


class DeviceActor:
    """Actor whose environments are pure functions on a device; their state is copied."""

    def __init__(self, slot: ActorSlot, state: ActorState) -> None:
        self._collect, self._slot, self._restarts = _collect(slot.config), slot, 0
        self._key = slot.own_key(self._restarts)
        # A copy: each call of `collect` donates the state.
        self._state = jax.device_put(state, slot.device, may_alias=False)

    @property
    def state(self) -> ActorState:
        """See `Actor`."""
        return self._state

    def collect(self, version: Version, iteration: int) -> Rollout:
        """See `Actor`."""
        published = place(version.published, self._slot.device)
        numbers = np.int32(iteration), self._slot.first, self._slot.gamma
        self._state, transitions, priorities, episodes = self._collect(
            self._state, published, self._key, *numbers
        )
        jax.block_until_ready(transitions)
        # np.asarray is several times faster than `jax.device_get` for scalars.
        episodes = jax.tree.map(np.asarray, episodes)
        return Rollout(transitions, priorities, episodes, version.updates)

    def restart(self, version: Version, times: int = 1) -> None:
        """See `Actor`; counts as `times` restarts."""
        self._restarts += times
        self._key = self._slot.own_key(self._restarts)
        published = place(version.published, self._slot.device)
        # A new state, because the failed call was given the last one.
        self._state = _start(self._slot.config)(published, self._key, self._slot.first)


@functools.lru_cache(maxsize=CACHED)
def _collect(config: ActorConfig) -> Callable[..., PyTree]:
    program = config.program
    # Schedules that count steps stay at their end once int32 cannot count any more.
    last = np.int32((2**31 - 1) // program.schedule.steps - 1)

    def collect(
        state: ActorState,
        published: Published,
        key: Array,
        iteration: Array,
        first: Array,
        gamma: Array,
    ) -> PyTree:
        keys = config.keys(key, iteration)
        policy = config.policy(published, first)
        counted = jnp.minimum(iteration, last)
        state, transitions, episodes = program.collect(state, policy, keys, counted)
        priorities = config.priorities(published, transitions, keys[0, 0], gamma)
        return state, transitions, priorities, episodes

    return jax.jit(collect, donate_argnums=0)


@functools.lru_cache(maxsize=CACHED)
def _start(config: ActorConfig) -> Callable[..., PyTree]:
    program = config.program

    def start(published: Published, key: Array, first: Array) -> ActorState:
        policy = config.policy(published, first)
        key = jax.random.fold_in(jax.random.wrap_key_data(key), _RESTART_STREAM)
        return collection.start(program.env, program.agent, config.num_envs, policy, key)

    return jax.jit(start)


def initial_priorities(
    agent: Agent, critics: PyTree, transitions: Transition, steps: int, gamma: Array, key: Array
) -> Array:
    """Compute priorities from n-step TD errors within a rollout.

    The last steps of a rollout have targets of fewer rewards: what follows is not yet known.

    Args:
      agent: its `td_error` is called.
      critics: parameters that `td_error` takes.
      transitions: leaves [rollout, E, ...], with final observations.
      steps: n, the most rewards in a target.
      gamma: discount factor.
      key: PRNG key.

    Returns:
      [rollout, E] float32.

    Reference: Horgan et al., "Distributed prioritized experience replay", ICLR 2018,
      section 3.
    """
    rollout, num_envs = transitions.reward.shape
    reach = min(steps, rollout)
    # The rollout ends after its last step: bootstrap there, as at a truncation.
    truncated = jnp.asarray(transitions.truncated).at[-1].set(True)
    window = np.arange(rollout)[:, None] + np.arange(reach)  # [rollout, reach]
    window = np.minimum(window, rollout - 1)  # not read beyond the cut
    fields = (transitions.reward, transitions.discount, truncated)
    per_env: PyTree = jax.vmap(n_step, in_axes=(1, 1, 1, None))
    reward, discount, cut = (each[window] for each in fields)
    result = jax.vmap(per_env, in_axes=(0, 0, 0, None))(reward, discount, cut, gamma)
    last = jnp.arange(rollout, dtype=jnp.int32)[:, None] + result.steps - np.int32(1)
    column = jnp.arange(num_envs, dtype=jnp.int32)
    batch = Batch(
        observation=transitions.observation,
        action=transitions.action,
        reward=result.reward,
        discount=result.discount,
        next_observation=jax.tree.map(
            lambda leaf: leaf[last, column], transitions.next_observation
        ),
        extras=transitions.extras,
    )
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), batch)
    errors = agent.td_error(critics, flat, key)
    return td_priority(errors).reshape(rollout, num_envs)
