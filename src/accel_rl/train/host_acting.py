"""Actors on host environments."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.envs import HostEnvironment, HostStep
from accel_rl.train.actors import CACHED, Published, Rollout, Seat, Setting, Version, stopped
from accel_rl.train.collection import ActorState, Episodes
from accel_rl.train.placement import placed
from accel_rl.types import Array, Transition


class HostActor:
    """Environments on the host; what chooses their actions is compiled, on the seat's device.

    Args:
      seat: where it acts.
      environments: gives it its environments, at the start and at each restart.
      state: what is said of an actor before its first step, whatever this one does.
      begin: iteration at which it begins, of which its seeds are a function.
    """

    def __init__(
        self,
        seat: Seat,
        environments: Callable[[], HostEnvironment],
        state: ActorState,
        begin: int,
    ) -> None:
        self._compiled = _compiled(seat.setting)
        self._seat, self._environments, self._state = seat, environments, state
        self._begin, self._restarts = begin, 0
        self._start()

    def _start(self) -> None:
        """With new episodes."""
        seat = self._seat
        self._key = seat.own_key(self._restarts)
        self._memory = seat.setting.program.agent.memory(seat.setting.num_envs)
        self._action: Any = None  # chosen already, where the agent learns from it
        self._env = self._environments()
        self._observation = self._env.reset(_seed(seat, self._begin, self._restarts))

    def restart(self, version: Version) -> None:
        """See `acting.Actor`; raises RuntimeError if the environments are closed."""
        self._restarts += 1
        self._start()

    @property
    def state(self) -> ActorState:
        """Host environments cannot be saved: they start new episodes."""
        return self._state

    def collect(self, version: Version, iteration: int) -> Rollout:
        """See `acting.Actor`."""
        seat, rollout = self._seat, self._seat.setting.program.schedule.rollout
        published = placed(version.published, seat.device)
        keys = self._compiled.keys(self._key, np.int32(iteration))
        rows, episodes = [], stopped(0, 0, 0)
        for row in range(rollout):
            done, transition = self._step(published, keys, np.int32(iteration), np.int32(row))
            rows.append(transition)
            episodes = jax.tree.map(np.add, episodes, _episodes(done))
        transitions = rows[0]
        if rollout > 1:
            transitions = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
        priorities = None
        if seat.setting.priority_steps:
            priorities = self._compiled.priorities(published, transitions, keys[0, 0], seat.gamma)
        return Rollout(transitions, priorities, episodes, version.updates)

    def _step(
        self, published: Published, keys: Array, iteration: np.int32, row: np.int32
    ) -> tuple[HostStep, Transition]:
        needs_next_action = self._seat.setting.program.agent.needs_next_action
        numbers = iteration, row, self._seat.first

        def act(memory: Any, observation: Any) -> Any:
            return self._compiled.act(published, memory, observation, keys, *numbers)

        before, action, memory = self._observation, self._action, self._memory
        if action is None:
            action, memory = act(memory, before)
        done = self._env.step(action)
        if jax.tree.leaves(memory):
            memory = self._compiled.forget(memory, done.terminated | done.truncated)
        extras = None
        if needs_next_action:
            # As environments that are compiled do it: see `actor.collect`.
            extras, _ = act(memory, done.final_observation)
            self._action, memory = act(memory, done.observation)
        self._observation, self._memory = done.observation, memory
        fields: Any = {
            "observation": before,
            "action": np.asarray(action),
            "reward": done.reward,
            "discount": 1 - done.terminated.astype(np.float32),
            "truncated": done.truncated,
            "next_observation": done.final_observation,
            "extras": None if extras is None else np.asarray(extras),
        }
        return done, Transition(**fields)


def _episodes(done: HostStep) -> Episodes:
    ends = done.terminated | done.truncated
    return stopped(ends.sum(), done.episode_return[ends].sum(), done.episode_length[ends].sum())


def _seed(seat: Seat, begin: int, restarts: int) -> int:
    """Of the first of its environments: seeds of all actors' are different."""
    key = jax.random.wrap_key_data(seat.start_key(restarts))
    key = jax.random.fold_in(key, np.uint32(7 << 29))
    bits = int(jax.random.bits(jax.random.fold_in(key, begin), (), jnp.uint32))
    return (bits >> 2) + int(seat.first)


class _Compiled(NamedTuple):
    act: Callable[..., Any]
    forget: Callable[..., Any]
    keys: Callable[..., Any]
    priorities: Callable[..., Any]


@functools.lru_cache(maxsize=CACHED)
def _compiled(setting: Setting) -> _Compiled:
    agent, schedule = setting.program.agent, setting.program.schedule
    # Steps of all environments, as schedules of exploration count them.
    steps, in_row = np.int32(schedule.steps), np.int32(schedule.num_envs)

    def act(
        published: Published,
        memory: Any,
        observation: Any,
        keys: Array,
        iteration: Array,
        row: Array,
        first: Array,
    ) -> Any:
        policy, step = setting.policy(published, first), iteration * steps + row * in_row
        return agent.act(policy, memory, observation, keys[row, 0], step)

    def forget(memory: Any, stopped: Array) -> Any:
        def one(stopped: Array, new: Any, old: Any) -> Any:
            return jax.tree.map(lambda a, b: jnp.where(stopped, a, b), new, old)

        return jax.vmap(one)(stopped, agent.memory(setting.num_envs), memory)

    return _Compiled(
        jax.jit(act), jax.jit(forget), jax.jit(setting.keys), jax.jit(setting.priorities)
    )
