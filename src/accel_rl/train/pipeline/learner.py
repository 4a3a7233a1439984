"""Learner: updates the agent, one batch or a group of them a call, and publishes its policy."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Sharding

from accel_rl.replay import Replay, td_priority
from accel_rl.train.pipeline.actors import CACHED, Published, Version
from accel_rl.train.pipeline.placement import (
    Placement,
    local_replica,
    local_shard,
    place,
    to_global,
)
from accel_rl.train.program import Program
from accel_rl.train.schedule import MOST_AHEAD
from accel_rl.train.state import TrainState
from accel_rl.train.value_limit import value_limit
from accel_rl.types import Array, PyTree, Sample

LIMIT = "value_limit"  # beside the agent's metrics, but a maximum
MOST_BYTES = 2**24  # of the batches sampled in one call


class LearnerBatch(NamedTuple):
    """Batch of an update on the learner's devices; for a group of n updates, leaves [n, ...]."""

    batch: PyTree
    weights: Array  # [B] float32, importance-sampling weights


class Learner:
    """Agent that learns on its device or devices.

    Args:
      program: whose agent learns.
      state: of the training; the agent's state is copied.
      placement: devices of the learner.
      critics: publish the agent's critics, which actors need for initial priorities.
      updates: number of updates so far.
    """

    def __init__(
        self,
        program: Program,
        state: TrainState,
        placement: Placement,
        critics: bool,
        updates: int,
    ) -> None:
        self._replicated, self._sharded = placement.learner(grouped=group_size(program) > 1)
        self._multi_process = not self._replicated.is_fully_addressable
        # XLA chooses the results' sharding in one process, where nobody depends on it.
        shardings = (self._replicated, self._sharded) if self._multi_process else None
        self._learn, self._publish = _learner(program, critics, shardings)
        # A copy: each update donates the state.
        if self._multi_process:
            self._state = to_global(state.agent, self._replicated)
        else:
            self._state = jax.device_put(state.agent, self._replicated, may_alias=False)
        self.updates = updates
        self.version = self._version()

    @property
    def state(self) -> PyTree:
        """Present state of the agent; the next `learn` donates it."""
        return local_replica(self._state) if self._multi_process else self._state

    def load(self, sample: Sample) -> LearnerBatch:
        """Move a batch to the learner's devices; any thread may call it ahead of `learn`.

        So the next batch is transferred while the learner works on the present one.
        """
        move = to_global if self._multi_process else place
        data = move((sample.batch, sample.weights), self._sharded)
        return jax.block_until_ready(LearnerBatch(*data))

    def learn(self, batch: LearnerBatch, key: np.ndarray) -> tuple[PyTree, dict[str, np.ndarray]]:
        """Run one update, or a group; return priorities [B] and the agent's metrics when done.

        With several processes, priorities are those of this process's shard, and metrics of all.

        Args:
          batch: from `load`.
          key: PRNG key data, [2] uint32; of n updates [n, 2], and results have the same axis.
        """
        self._state, priorities, metrics = self._learn(self._state, *batch, key)
        # np.asarray is several times faster than `jax.device_get` for scalars.
        found = {name: np.asarray(value) for name, value in metrics.items()}
        jax.block_until_ready(priorities)
        if self._multi_process:
            priorities = local_shard(priorities)
        self.updates += 1 if key.ndim == 1 else len(key)
        return priorities, found

    def publish(self) -> Version:
        """Copy the present policy for actors."""
        self.version = self._version()
        jax.block_until_ready(self.version.published)
        return self.version

    def _version(self) -> Version:
        published = self._publish(self._state)
        return Version(local_replica(published) if self._multi_process else published, self.updates)


def prioritised(program: Program) -> bool:
    """Return whether sampling depends on priorities; assumed so for a replay port."""
    buffer = program.buffer
    return not isinstance(buffer, Replay) or buffer.parts[0].sampler.prioritised


@functools.lru_cache(maxsize=CACHED)
def group_size(program: Program) -> int:
    """Return the number of updates whose batches are sampled, and learned from, in one call.

    Without priorities no batch depends on what was learned from another, so the batches of an
    iteration are drawn together: the largest divisor of `updates` that stays below `MOST_BYTES`.
    """
    updates = program.schedule.updates
    if updates == 1 or prioritised(program):
        return 1
    replay = program.require_replay()
    batch = jax.eval_shape(lambda: replay.sample(replay.init(), jax.random.key(0), 1.0, 1.0).batch)
    size = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(batch))
    divisors = (n for n in range(1, updates + 1) if updates % n == 0)
    return max((n for n in divisors if n * size <= MOST_BYTES), default=1)


class _Block(NamedTuple):
    """Inputs of `MOST_AHEAD` iterations, NumPy."""

    sample: np.ndarray  # [MOST_AHEAD, updates, 2] uint32, key data
    learn: np.ndarray  # [MOST_AHEAD, updates, 2] uint32
    beta: np.ndarray  # [MOST_AHEAD] float32


class UpdateInputs:
    """Keys, importance-sampling exponent and discount of each iteration; thread-safe.

    Computed for blocks of iterations, because one dispatch costs more than what it computes.
    Sampling keys are on `device`, the buffer's.
    """

    def __init__(self, program: Program, state: TrainState, device: jax.Device) -> None:
        self._device = device
        self._group = group_size(program)
        self._compiled = _update_inputs(program)
        self._key = jax.device_get(state.key)
        self._hyper = jax.device_get(state.hyper)
        self._block = functools.lru_cache(maxsize=4)(self._computed)
        self.gamma = float(self._hyper["gamma"])

    def sampling(self, iteration: int) -> tuple[list[Array], float]:
        """Return the keys of an iteration's samples, [n] each of a group, and beta."""
        number, within = divmod(iteration, MOST_AHEAD)
        block = self._block(number)
        data = jax.device_put(self._grouped(block.sample[within]), self._device)
        keys = [jax.random.wrap_key_data(each) for each in data]
        return keys, float(block.beta[within])

    def learning(self, iteration: int) -> list[np.ndarray]:
        """Return key data of an iteration's updates, [2] uint32 each, of a group [n, 2]."""
        number, within = divmod(iteration, MOST_AHEAD)
        return self._grouped(self._block(number).learn[within])

    def _grouped(self, keys: np.ndarray) -> list[np.ndarray]:
        return list(keys if self._group == 1 else keys.reshape(-1, self._group, 2))

    def _computed(self, number: int) -> _Block:
        return _Block(*jax.device_get(self._compiled(self._key, self._hyper, np.int32(number))))


@functools.lru_cache(maxsize=CACHED)
def _learner(
    program: Program, critics: bool, shardings: tuple[Sharding, Sharding] | None
) -> tuple[Callable[..., PyTree], Callable[..., PyTree]]:
    agent = program.agent

    def learn(state: PyTree, batch: PyTree, weights: Array, key: Array) -> PyTree:
        key = jax.random.wrap_key_data(key)
        state, learned = agent.learn(state, batch, weights, key)
        limit = value_limit(agent, batch, learned.metrics)
        return state, td_priority(learned.td_error), {**learned.metrics, LIMIT: limit}

    def learn_all(state: PyTree, batch: PyTree, weights: Array, keys: Array) -> PyTree:
        def one(state: PyTree, inputs: PyTree) -> PyTree:
            state, priorities, metrics = learn(state, *inputs)
            return state, (priorities, metrics)

        if keys.ndim == 1:
            return learn(state, batch, weights, keys)
        state, learned = jax.lax.scan(one, state, (batch, weights, keys))
        return state, *learned

    def publish(state: PyTree) -> Published:
        published = Published(agent.policy(state), agent.critics(state) if critics else None)
        return jax.tree.map(jnp.copy, published)  # the next update donates the state itself

    if shardings is None:
        return jax.jit(learn_all, donate_argnums=0), jax.jit(publish)
    replicated, sharded = shardings
    # The loss is a mean over the global batch, so XLA inserts the all-reduce of the gradients.
    learned = jax.jit(learn_all, donate_argnums=0, out_shardings=(replicated, sharded, replicated))
    return learned, jax.jit(publish, out_shardings=replicated)


@functools.lru_cache(maxsize=CACHED)
def _update_inputs(program: Program) -> Callable[..., PyTree]:
    def block(key: Array, hyper: PyTree, number: Array) -> tuple[Array, Array, Array]:
        iterations = number * np.int32(MOST_AHEAD) + jnp.arange(MOST_AHEAD, dtype=jnp.int32)
        keys = jax.vmap(program.keys, (None, 0))(key, iterations)
        sample, learn = jax.random.key_data(keys.sample), jax.random.key_data(keys.learn)
        # One by one: XLA may fuse the multiply and add of a vector, and round unlike for a scalar.
        beta = jax.lax.map(lambda iteration: program.beta(hyper, iteration), iterations)
        return sample, learn, beta

    return jax.jit(block)
