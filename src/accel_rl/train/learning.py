"""The learner of the pipelined executor, and what it publishes."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Sharding

from accel_rl.replay import td_priority
from accel_rl.train.actors import CACHED, Published, Version
from accel_rl.train.groups import group_size
from accel_rl.train.placement import (
    Placement,
    from_here,
    part_here,
    placed,
    spans_processes,
    whole_here,
)
from accel_rl.train.program import BLOCK, Program
from accel_rl.train.state import TrainState
from accel_rl.types import Array, Sample


class Lesson(NamedTuple):
    """What an update learns from, on the learner's device or devices; of n, leaves [n, ...]."""

    batch: Any
    weights: Array  # [B] float32


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
        self._whole, self._split = placement.learner(grouped=group_size(program) > 1)
        self._across = spans_processes(self._whole)
        # Left to XLA in one process, where nobody has to know how results lie.
        lying = (self._whole, self._split) if self._across else None
        self._learn, self._publish = _learner(program, critics, lying)
        if self._across:
            self._state = from_here(state.agent, self._whole)
        else:
            self._state = jax.device_put(state.agent, self._whole, may_alias=False)
        self.updates = updates
        self.version = self._version()

    @property
    def state(self) -> Any:
        """The agent's; the next `learn` gives it away."""
        return whole_here(self._state) if self._across else self._state

    def lesson(self, sample: Sample) -> Lesson:
        """Moves there what it will learn from, once it is there; for any thread, ahead of `learn`.

        So that while the learner is at one batch the next is on its way.
        """
        move = from_here if self._across else placed
        return jax.block_until_ready(Lesson(*move((sample.batch, sample.weights), self._split)))

    def learn(self, lesson: Lesson, key: np.ndarray) -> tuple[Any, dict[str, np.ndarray]]:
        """An update, or several; priorities [B] and the agent's metrics, once it is done.

        Across processes, priorities are those of this process's part, and metrics of the whole.

        Args:
          lesson: what it learns from.
          key: data of a random key, [2] uint32; of n updates [n, 2], and then what is returned has
            the same leading axis.
        """
        self._state, priorities, metrics = self._learn(self._state, *lesson, key)
        # Which is several times faster than `jax.device_get`.
        found = {name: np.asarray(value) for name, value in metrics.items()}
        jax.block_until_ready(priorities)
        if self._across:
            priorities = part_here(priorities)
        self.updates += 1 if key.ndim == 1 else len(key)
        return priorities, found

    def publish(self) -> Version:
        """The newest version, for actors."""
        self.version = self._version()
        jax.block_until_ready(self.version.published)
        return self.version

    def _version(self) -> Version:
        published = self._publish(self._state)
        return Version(whole_here(published) if self._across else published, self.updates)


class _Block(NamedTuple):
    """Of `BLOCK` iterations, of NumPy."""

    sample: np.ndarray  # [BLOCK, updates, 2] uint32, data of keys
    learn: np.ndarray  # [BLOCK, updates, 2] uint32
    beta: np.ndarray  # [BLOCK] float32


class Drawing:
    """What the sampling and the learning of an iteration need to know; for any thread.

    It is computed in blocks of iterations: one call for each costs more than what it computes.

    Args:
      program: what is run.
      state: of the training.
      device: where keys of samples are to be, the memory's.
    """

    def __init__(self, program: Program, state: TrainState, device: jax.Device) -> None:
        self._device = device
        self._group = group_size(program)
        self._compiled = _drawing(program)
        self._key = jax.device_get(state.key)
        self._hyper = jax.device_get(state.hyper)
        self._block = functools.lru_cache(maxsize=4)(self._computed)
        self.gamma = float(self._hyper["gamma"])

    def sampling(self, iteration: int) -> tuple[list[Array], float]:
        """Keys of its updates' samples, [n] of a group's, and the exponent of their weights."""
        number, within = divmod(iteration, BLOCK)
        block = self._block(number)
        data = jax.device_put(self._grouped(block.sample[within]), self._device)
        keys = [jax.random.wrap_key_data(each) for each in data]
        return keys, float(block.beta[within])

    def learning(self, iteration: int) -> list[np.ndarray]:
        """Data of the keys of its updates, [2] uint32 each, of a group's [n, 2]."""
        number, within = divmod(iteration, BLOCK)
        return self._grouped(self._block(number).learn[within])

    def _grouped(self, keys: np.ndarray) -> list[np.ndarray]:
        return list(keys if self._group == 1 else keys.reshape(-1, self._group, 2))

    def _computed(self, number: int) -> _Block:
        return _Block(*jax.device_get(self._compiled(self._key, self._hyper, np.int32(number))))


@functools.lru_cache(maxsize=CACHED)
def _learner(
    program: Program, critics: bool, lying: tuple[Sharding, Sharding] | None
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    agent = program.agent

    def learn(state: Any, batch: Any, weights: Array, key: Array) -> Any:
        key = jax.random.wrap_key_data(key)
        state, learned = agent.learn(state, batch, weights, key)
        return state, td_priority(learned.td_error), learned.metrics

    def learn_all(state: Any, batch: Any, weights: Array, keys: Array) -> Any:
        def one(state: Any, inputs: Any) -> Any:
            state, priorities, metrics = learn(state, *inputs)
            return state, (priorities, metrics)

        if keys.ndim == 1:
            return learn(state, batch, weights, keys)
        state, learned = jax.lax.scan(one, state, (batch, weights, keys))
        return state, *learned

    def publish(state: Any) -> Published:
        given = Published(agent.policy(state), agent.critics(state) if critics else None)
        return jax.tree.map(jnp.copy, given)  # the state itself is given away

    if lying is None:
        return jax.jit(learn_all, donate_argnums=0), jax.jit(publish)
    whole, split = lying
    # The batch's mean is over all processes: XLA adds up their gradients, with the collectives.
    learned = jax.jit(learn_all, donate_argnums=0, out_shardings=(whole, split, whole))
    return learned, jax.jit(publish, out_shardings=whole)


@functools.lru_cache(maxsize=CACHED)
def _drawing(program: Program) -> Callable[..., Any]:
    def block(key: Array, hyper: Any, number: Array) -> tuple[Array, Array, Array]:
        iterations = number * np.int32(BLOCK) + jnp.arange(BLOCK, dtype=jnp.int32)
        keys = jax.vmap(program.keys, (None, 0))(key, iterations)
        sample, learn = jax.random.key_data(keys.sample), jax.random.key_data(keys.learn)
        # Not as a vector, of which XLA may round products and sums together, unlike of scalars.
        beta = jax.lax.map(lambda iteration: program.beta(hyper, iteration), iterations)
        return sample, learn, beta

    return jax.jit(block)
