"""The learner of the pipelined executor, and what it publishes."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.replay import td_priority
from accel_rl.train.acting import CACHED, Published, Version
from accel_rl.train.placement import Placement
from accel_rl.train.program import Program, TrainState
from accel_rl.types import Array, Sample


class Learner:
    """An agent that learns, on its device or devices.

    Args:
      program: what is run.
      state: of the training; the agent's is copied.
      placement: where to learn.
      critics: whether actors read the agent's critics.
      updates: that the agent has learned from already.
    """

    def __init__(
        self,
        program: Program,
        state: TrainState,
        placement: Placement,
        critics: bool,
        updates: int,
    ) -> None:
        self._learn, self._publish = _learner(program, critics)
        self._whole, self._split = placement.learner()
        self._state = jax.device_put(state.agent, self._whole, may_alias=False)
        self.updates = updates
        self.version = Version(self._publish(self._state), updates)

    @property
    def state(self) -> Any:
        """The agent's; the next `learn` gives it away."""
        return self._state

    def learn(self, sample: Sample, key: Array) -> tuple[Array, dict[str, np.ndarray]]:
        """An update; priorities [B] and the agent's metrics, once it is done."""
        batch, weights = jax.device_put((sample.batch, sample.weights), self._split)
        key = jax.device_put(key, self._whole)
        self._state, priorities, metrics = self._learn(self._state, batch, weights, key)
        found = jax.device_get(metrics)
        jax.block_until_ready(priorities)
        self.updates += 1
        return priorities, found

    def publish(self) -> Version:
        """The newest version, for actors."""
        self.version = Version(self._publish(self._state), self.updates)
        jax.block_until_ready(self.version.published)
        return self.version


class Drawing:
    """What the sampling and the learning of an iteration need to know."""

    def __init__(self, program: Program, state: TrainState) -> None:
        self._keys, self._beta = _drawing(program)
        self._key = jax.device_get(state.key)
        self._hyper = jax.device_get(state.hyper)
        self.gamma = float(self._hyper["gamma"])

    def sampling(self, iteration: int) -> tuple[list[Array], float]:
        """Keys of its updates' samples, and the exponent of importance weights."""
        number = np.int32(iteration)
        return self._keys(self._key, number)[0], float(self._beta(self._hyper, number))

    def learning(self, iteration: int) -> list[Array]:
        """Keys of its updates."""
        return self._keys(self._key, np.int32(iteration))[1]


@functools.lru_cache(maxsize=CACHED)
def _learner(program: Program, critics: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    agent = program.agent

    def learn(state: Any, batch: Any, weights: Array, key: Array) -> Any:
        state, learned = agent.learn(state, batch, weights, key)
        return state, td_priority(learned.td_error), learned.metrics

    def publish(state: Any) -> Published:
        given = Published(agent.policy(state), agent.critics(state) if critics else None)
        return jax.tree.map(jnp.copy, given)  # the state itself is given away

    return jax.jit(learn, donate_argnums=0), jax.jit(publish)


@functools.lru_cache(maxsize=CACHED)
def _drawing(program: Program) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def keys(key: Array, iteration: Array) -> tuple[list[Array], list[Array]]:
        found = program.keys(key, iteration)
        numbers = range(program.schedule.updates)
        return [found.sample[n] for n in numbers], [found.learn[n] for n in numbers]

    return jax.jit(keys), jax.jit(program.beta)
