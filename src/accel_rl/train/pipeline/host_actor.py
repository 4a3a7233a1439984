"""Actors whose environments step on the host, such as Gymnasium's, and these environments."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.envs import HostEnvironment, HostStep
from accel_rl.train.collection import ActorState, Episodes, fresh_memory
from accel_rl.train.pipeline.actors import (
    CACHED,
    ActorConfig,
    ActorSlot,
    Published,
    Rollout,
    Version,
    host_episodes,
)
from accel_rl.train.pipeline.placement import place
from accel_rl.train.program import Program
from accel_rl.types import Array, ArrayLike, PyTree, Transition

HostEnvironmentSource: TypeAlias = (
    HostEnvironment | Sequence[HostEnvironment] | Callable[[int], HostEnvironment]
)
"""Environments of the only actor or of each, or a function of the actor's index that opens them."""


class HostEnvironments:
    """One `HostEnvironment` for each actor; a context manager that closes those that it opened.

    Args:
      program: with the same spaces and number of environments.
      env: None for a program whose environment is compiled.
      num_actors: that share the program's environments.
    """

    def __init__(
        self, program: Program, env: HostEnvironmentSource | None, num_actors: int
    ) -> None:
        self._program, self._share = program, program.schedule.num_envs // num_actors
        self._hosts: dict[int, HostEnvironment] = {}
        self._open: Callable[[int], HostEnvironment] | None = None
        if env is None:
            return
        if not isinstance(env, (HostEnvironment, Sequence)):
            self._open = env
            return
        hosts = [env] if isinstance(env, HostEnvironment) else env
        if len(hosts) != num_actors:
            raise ValueError(f"env must be one for each of {num_actors} actors, got {len(hosts)}")
        for number, host in enumerate(hosts):
            self._check(host)
            self._hosts[number] = host

    def of(self, number: int) -> HostEnvironment:
        """Return an actor's environments, to be reset; opened anew where a function opens them."""
        if self._open is not None:
            if number in self._hosts:
                self._hosts[number].close()
            self._hosts[number] = self._open(number)
            self._check(self._hosts[number])
        return self._hosts[number]

    def __enter__(self) -> "HostEnvironments":
        return self

    def __exit__(self, *error: object) -> None:
        if self._open is not None:
            for host in self._hosts.values():
                host.close()

    def _check(self, host: HostEnvironment) -> None:
        if host.num_envs != self._share:
            raise ValueError(
                f"env must have {self._share} environments for each actor, got {host.num_envs}"
            )
        for name in ("observation_space", "action_space"):
            ours, theirs = getattr(self._program.env, name), getattr(host, name)
            if ours != theirs:
                raise ValueError(f"env's {name} must be the program's, {ours}, got {theirs}")


class HostActor:
    """Actor with host environments; its policy is compiled for the slot's device.

    Args:
      slot: index, device and keys.
      environments: returns the actor's environments; called at the start and at each restart.
      state: actor state of the training state.
      begin: first iteration; environment seeds derive from it.
      continues: go on with the episodes that the environments are in, which `state` belongs to,
        if they have been reset before.
    """

    def __init__(
        self,
        slot: ActorSlot,
        environments: Callable[[], HostEnvironment],
        state: ActorState,
        begin: int,
        continues: bool = False,
    ) -> None:
        self._compiled = _compiled(slot.config)
        self._slot, self._environments, self._state = slot, environments, state
        self._begin, self._restarts = begin, 0
        self._start(continues)

    def _start(self, continues: bool = False) -> None:
        """Start new episodes, or continue those that the environments are in."""
        slot = self._slot
        self._key = slot.own_key(self._restarts)
        self._env = self._environments()
        # The next action is chosen already where the agent learns from it.
        self._action: Any = None
        latest = self._env.observation if continues else None
        if latest is not None:
            self._observation, self._memory = latest, self._state.memory
            self._action = self._state.action
            return
        self._memory = slot.config.program.agent.memory(slot.config.num_envs)
        seed = first_seed(slot.shared_key(self._restarts), self._begin)
        self._observation = self._env.reset(seed + int(slot.first))

    def restart(self, version: Version) -> None:
        """See `Actor`; raises RuntimeError if the environments are closed."""
        self._restarts += 1
        self._start()

    @property
    def state(self) -> ActorState:
        """The agent's part of the state; host environments themselves cannot be saved."""
        action = self._state.action if self._action is None else self._action
        parts: PyTree = {"observation": self._observation, "memory": self._memory, "action": action}
        return dataclasses.replace(self._state, **parts)

    def collect(self, version: Version, iteration: int) -> Rollout:
        """See `Actor`."""
        slot, rollout = self._slot, self._slot.config.program.schedule.rollout
        published = place(version.published, slot.device)
        keys = self._compiled.keys(self._key, np.int32(iteration))
        rows, episodes = [], host_episodes(0, 0, 0)
        for row in range(rollout):
            done, transition = self._step(published, keys, np.int32(iteration), np.int32(row))
            rows.append(transition)
            episodes = jax.tree.map(np.add, episodes, ended_episodes(done))
        transitions = slot.config.program.scaled(host_rollout(rows))
        priorities = None
        if slot.config.priority_steps:
            priorities = self._compiled.priorities(published, transitions, keys[0, 0], slot.gamma)
        return Rollout(transitions, priorities, episodes, version.updates)

    def _step(
        self, published: Published, keys: Array, iteration: np.int32, row: np.int32
    ) -> tuple[HostStep, Transition]:
        needs_next_action = self._slot.config.program.agent.needs_next_action
        numbers = iteration, row, self._slot.first

        def act(memory: PyTree, observation: PyTree) -> PyTree:
            return self._compiled.act(published, memory, observation, keys, *numbers)

        before, action, memory = self._observation, self._action, self._memory
        if action is None:
            action, memory = act(memory, before)
        done = self._env.step(action)
        if jax.tree.leaves(memory):
            memory = self._compiled.reset_memory(memory, done.terminated | done.truncated)
        extras = None
        if needs_next_action:
            # In the order of `collection.collect`.
            extras, _ = act(memory, done.final_observation)
            self._action, memory = act(memory, done.observation)
        self._observation, self._memory = done.observation, memory
        return done, host_transition(before, action, done, extras)


def host_transition(
    observation: PyTree, action: ArrayLike, done: HostStep, extras: Array | None = None
) -> Transition:
    """Return the transitions of a step of E environments, NumPy arrays [E, ...]."""
    fields: PyTree = {
        "observation": observation,
        "action": np.asarray(action),
        "reward": done.reward,
        "discount": 1 - done.terminated.astype(np.float32),
        "truncated": done.truncated,
        "next_observation": done.final_observation,
        "extras": None if extras is None else np.asarray(extras),
    }
    return Transition(**fields)


def host_rollout(rows: Sequence[Transition], axis: int = 0) -> Transition:
    """Return the transitions of an iteration, leaves [E, ...] or [rollout, E, ...].

    With seeds before E, `axis` is 1: the rollout follows them.
    """
    if len(rows) == 1:
        return rows[0]
    return jax.tree.map(lambda *leaves: np.stack(leaves, axis), *rows)


def ended_episodes(done: HostStep) -> Episodes:
    """Sum over the episodes that a step ended, of the last axis."""
    ends = done.terminated | done.truncated
    return host_episodes(
        ends.sum(-1), (ends * done.episode_return).sum(-1), (ends * done.episode_length).sum(-1)
    )


def first_seed(key: Array, begin: int) -> int:
    """Return the seed of the first environment.

    Args:
      key: of the training, [2] uint32.
      begin: iteration at which the environments are reset.
    """
    stream = jax.random.fold_in(jax.random.wrap_key_data(key), np.uint32(7 << 29))
    return int(jax.random.bits(jax.random.fold_in(stream, begin), (), jnp.uint32)) >> 2


class _Compiled(NamedTuple):
    act: Callable[..., PyTree]
    reset_memory: Callable[..., PyTree]
    keys: Callable[..., PyTree]
    priorities: Callable[..., PyTree]


@functools.lru_cache(maxsize=CACHED)
def _compiled(config: ActorConfig) -> _Compiled:
    agent, schedule = config.program.agent, config.program.schedule
    # Exploration schedules count the steps of all environments.
    steps, in_row = np.int32(schedule.steps), np.int32(schedule.num_envs)

    def act(
        published: Published,
        memory: PyTree,
        observation: PyTree,
        keys: Array,
        iteration: Array,
        row: Array,
        first: Array,
    ) -> PyTree:
        policy, step = config.policy(published, first), iteration * steps + row * in_row
        return agent.act(policy, memory, observation, keys[row, 0], step)

    fresh = functools.partial(fresh_memory, agent)
    return _Compiled(jax.jit(act), jax.jit(fresh), jax.jit(config.keys), jax.jit(config.priorities))
