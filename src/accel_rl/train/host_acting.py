"""Actors on host environments."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.envs import HostEnvironment, HostStep
from accel_rl.train.acting import Part, Published, Rollout, Version, stopped
from accel_rl.train.actor import ActorState, Episodes
from accel_rl.types import Array, Transition


class HostActor:
    """Environments on the host; what chooses their actions is compiled, on the part's device.

    Args:
      part: what it acts in.
      env: its environments, which start new episodes.
      state: what is said of an actor before its first step, whatever this one does.
      first: iteration at which it begins, of which its seeds are a function.
    """

    def __init__(self, part: Part, env: HostEnvironment, state: ActorState, first: int) -> None:
        agent, num_envs = part.program.agent, part.num_envs
        # Steps of all environments, as schedules of exploration count them.
        steps = np.int32(part.program.schedule.steps)
        in_row = np.int32(part.program.schedule.num_envs)

        def act(
            published: Published,
            memory: Any,
            observation: Any,
            keys: Array,
            iteration: Array,
            row: Array,
        ) -> Any:
            step = iteration * steps + row * in_row
            return agent.act(part.policy(published), memory, observation, keys[row, 0], step)

        def forget(memory: Any, stopped: Array) -> Any:
            def one(stopped: Array, new: Any, old: Any) -> Any:
                return jax.tree.map(lambda a, b: jnp.where(stopped, a, b), new, old)

            return jax.vmap(one)(stopped, agent.memory(num_envs), memory)

        self._act = jax.jit(act)
        self._forget = jax.jit(forget)
        self._keys = jax.jit(part.keys)
        self._priorities = jax.jit(part.priorities)
        self._part, self._env, self._state = part, env, state
        self._key = jax.device_put(part.own_key(), part.device)
        self._memory = agent.memory(num_envs)
        self._action: Any = None  # chosen already, where the agent learns from it
        self._observation = env.reset(_seed(part, first))

    @property
    def state(self) -> ActorState:
        """Host environments cannot be saved: they start new episodes."""
        return self._state

    def collect(self, version: Version, iteration: int) -> Rollout:
        """See `acting.Actor`."""
        device, schedule = self._part.device, self._part.program.schedule
        published = jax.device_put(version.published, device)
        keys = self._keys(self._key, np.int32(iteration))
        rows, episodes = [], stopped(0, 0, 0)
        for row in range(schedule.rollout):
            done, transition = self._step(published, keys, np.int32(iteration), np.int32(row))
            rows.append(transition)
            episodes = jax.tree.map(np.add, episodes, _episodes(done))
        transitions = rows[0]
        if schedule.rollout > 1:
            transitions = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
        priorities = None
        if self._part.priority_steps:
            priorities = self._priorities(published, transitions, keys[0, 0])
        return Rollout(transitions, priorities, episodes, version.updates)

    def _step(
        self, published: Published, keys: Array, iteration: np.int32, row: np.int32
    ) -> tuple[HostStep, Transition]:
        agent = self._part.program.agent

        def act(memory: Any, observation: Any) -> Any:
            return self._act(published, memory, observation, keys, iteration, row)

        before, action, memory = self._observation, self._action, self._memory
        if action is None:
            action, memory = act(memory, before)
        done = self._env.step(action)
        if jax.tree.leaves(memory):
            memory = self._forget(memory, done.terminated | done.truncated)
        extras = None
        if agent.needs_next_action:
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


def _seed(part: Part, first: int) -> int:
    """Of the first of its environments: seeds of all actors' are different."""
    key = jax.random.fold_in(jax.random.wrap_key_data(part.key), np.uint32(7 << 29))
    bits = int(jax.random.bits(jax.random.fold_in(key, first), (), jnp.uint32))
    return (bits >> 2) + part.number * part.num_envs
