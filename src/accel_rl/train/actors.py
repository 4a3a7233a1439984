"""Actors of the pipelined executor: what steps environments with a published policy."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.train import collection
from accel_rl.train.collection import ActorState, Episodes
from accel_rl.train.judging import judge
from accel_rl.train.placement import placed
from accel_rl.train.program import Program
from accel_rl.types import Array, ArrayLike, Transition

CACHED = 16  # programs whose compiled functions are kept

# Iterations are numbered with an int32, so no key of theirs is made with these.
ACTORS = np.uint32(3 << 30)
ANEW = np.uint32(5 << 29)

Exploration = Callable[[Any, Array], Any]
"""exploration(policy, numbers [E] int32): the policy with which environments of these numbers, of
all, are to act; pure."""


class Published(NamedTuple):
    """What actors get of an agent; a pytree that is never given away."""

    policy: Any
    critics: Any  # None unless actors give priorities


class Version(NamedTuple):
    """What was published, and after how many updates."""

    published: Published
    updates: int


class Rollout(NamedTuple):
    """What an actor did in an iteration."""

    transitions: Transition  # leaves [E, ...], or [rollout, E, ...] if rollout is above 1
    priorities: Array | None  # of the transitions, with the same leading axes
    episodes: Episodes  # of NumPy
    updates: int  # those that the policy had seen


def stopped(count: Any, episode_return: Any, episode_length: Any) -> Episodes:
    """Of NumPy."""
    numbers: Any = np.int32(count), np.float32(episode_return), np.float32(episode_length)
    return Episodes(*numbers)


class Actor(Protocol):
    """Steps its environments."""

    def collect(self, version: Version, iteration: int) -> Rollout:
        """Steps them as often as an iteration says; returns once it is done."""

    def restart(self, version: Version) -> None:
        """Starts new episodes, with keys of their own, whatever became of the last ones."""

    @property
    def state(self) -> ActorState:
        """Where they stand."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """How actors act in a program: all static, and the same for all of them."""

    program: Program
    actors: int  # that share the environments
    priority_steps: int  # rewards in the targets that priorities come from; 0: none
    exploration: Exploration | None

    @property
    def num_envs(self) -> int:
        """Environments of an actor."""
        return self.program.schedule.num_envs // self.actors

    def keys(self, key: Array, iteration: Array) -> Array:
        """An actor's random keys of an iteration, [rollout, 1 + its environments]."""
        plan = dataclasses.replace(self.program.schedule, num_envs=self.num_envs)
        return dataclasses.replace(self.program, schedule=plan).keys(key, iteration).collect

    def policy(self, published: Published, first: Array) -> Any:
        """The policy of an actor, of whose environments `first` is the number of the first."""
        if self.exploration is None:
            return published.policy
        numbers = first + jnp.arange(self.num_envs, dtype=jnp.int32)
        return self.exploration(published.policy, numbers)

    def priorities(
        self, published: Published, transitions: Transition, key: Array, gamma: Array
    ) -> Array | None:
        """Of transitions, leaves [E, ...] or [rollout, E, ...]; None if the memory gives them."""
        if not self.priority_steps:
            return None
        single = self.program.schedule.rollout == 1
        rows = jax.tree.map(lambda leaf: leaf[None], transitions) if single else transitions
        critics, steps = published.critics, self.priority_steps
        key = jax.random.fold_in(key, 1)  # it chose actions already
        found = judge(self.program.agent, critics, rows, steps, gamma, key)
        return found[0] if single else found


@dataclasses.dataclass(frozen=True)
class Seat:
    """Where one actor sits."""

    setting: Setting
    number: int
    device: jax.Device
    key: ArrayLike  # [2] uint32, of the training
    gamma: ArrayLike

    @property
    def first(self) -> np.int32:
        """The number of the first of its environments."""
        return np.int32(self.number * self.setting.num_envs)

    def own_key(self, restarts: int) -> Array:
        """[2] uint32, of this actor once it was restarted so often, on its device.

        Of the only one, before any restart, that of the training.
        """
        key = self.start_key(restarts)
        if self.setting.actors > 1:
            folded = jax.random.fold_in(
                jax.random.wrap_key_data(key), ACTORS + np.uint32(self.first)
            )
            key = jax.random.key_data(folded)
        return jax.device_put(key, self.device)

    def start_key(self, restarts: int) -> Array:
        """[2] uint32, of all actors that were restarted so often."""
        key = jnp.asarray(self.key)
        if restarts:
            folded = jax.random.fold_in(jax.random.wrap_key_data(key), ANEW + np.uint32(restarts))
            key = jax.random.key_data(folded)
        return key


class DeviceActor:
    """Environments that are pure functions, on a device.

    Args:
      seat: where it acts.
      state: of its own environments; copied.
    """

    def __init__(self, seat: Seat, state: ActorState) -> None:
        self._collect, self._seat, self._restarts = _collect(seat.setting), seat, 0
        self._key = seat.own_key(self._restarts)
        self._state = jax.device_put(state, seat.device, may_alias=False)

    @property
    def state(self) -> ActorState:
        """Where the environments stand."""
        return self._state

    def collect(self, version: Version, iteration: int) -> Rollout:
        """See `Actor`."""
        published = placed(version.published, self._seat.device)
        numbers = np.int32(iteration), self._seat.first, self._seat.gamma
        self._state, transitions, priorities, episodes = self._collect(
            self._state, published, self._key, *numbers
        )
        jax.block_until_ready(transitions)
        # Which is several times faster than `jax.device_get`.
        episodes = jax.tree.map(np.asarray, episodes)
        return Rollout(transitions, priorities, episodes, version.updates)

    def restart(self, version: Version, times: int = 1) -> None:
        """See `Actor`; as if it were so many times."""
        self._restarts += times
        self._key = self._seat.own_key(self._restarts)
        published = placed(version.published, self._seat.device)
        # A new state, for what failed had been given the last one.
        self._state = _start(self._seat.setting)(published, self._key, self._seat.first)


@functools.lru_cache(maxsize=CACHED)
def _collect(setting: Setting) -> Callable[..., Any]:
    program = setting.program
    # Steps of all environments, as schedules of exploration count them.
    steps = np.int32(program.schedule.steps)

    def collect(
        state: ActorState,
        published: Published,
        key: Array,
        iteration: Array,
        first: Array,
        gamma: Array,
    ) -> Any:
        keys = setting.keys(key, iteration)
        policy = setting.policy(published, first)
        state, transitions, episodes = collection.collect(
            program.env, program.agent, state, policy, keys, iteration * steps
        )
        priorities = setting.priorities(published, transitions, keys[0, 0], gamma)
        return state, transitions, priorities, episodes

    return jax.jit(collect, donate_argnums=0)


@functools.lru_cache(maxsize=CACHED)
def _start(setting: Setting) -> Callable[..., Any]:
    program = setting.program

    def start(published: Published, key: Array, first: Array) -> ActorState:
        policy = setting.policy(published, first)
        key = jax.random.fold_in(jax.random.wrap_key_data(key), ANEW)  # no iteration's
        return collection.start(program.env, program.agent, setting.num_envs, policy, key)

    return jax.jit(start)
