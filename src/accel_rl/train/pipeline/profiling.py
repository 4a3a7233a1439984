"""Steps of a pipelined training run one at a time, for profiling."""

import dataclasses
from collections.abc import Callable, Mapping

import jax
import numpy as np

from accel_rl.train.compiled import initial_state
from accel_rl.train.pipeline.actors import ActorConfig, ActorSlot, DeviceActor, Rollout
from accel_rl.train.pipeline.buffer_ports import for_each_sample, port_of
from accel_rl.train.pipeline.learner import Learner, group_size, prioritised
from accel_rl.train.pipeline.placement import Placement
from accel_rl.train.program import Program
from accel_rl.train.state import without_batch
from accel_rl.types import PyTree


class StepHarness:
    """Training past its warm-up whose steps are called one at a time.

    Each step does what the pipelined executors do: transfers between devices are part of the step
    whose worker makes them, and a step ends when its results are computed. `sample` and `learn` are
    for a group of updates where the executors group them, see `learner.group_size`.

    Args:
      program: its buffer must be a `Replay`, its environment pure functions.
      placement: devices of its steps.
      hyper: arguments of `program.init`.

    Attributes:
      steps: functions by name: `collect`, `insert`, `sample`, `update`, `learn` and `sync`; and
        `write` and `gather`, the part of `insert` and `sample` in the buffer's store.
    """

    def __init__(self, program: Program, placement: Placement, hyper: Mapping[str, PyTree]) -> None:
        state = initial_state(program, jax.random.key(0), hyper)
        replay = program.require_replay()
        self._gamma = float(jax.device_get(state.hyper["gamma"]))
        self._iteration = 0
        self._learner = Learner(program, state, placement, False, 0)
        config = ActorConfig(program, 1, 0, None)
        self._actor = DeviceActor(ActorSlot.of(config, 0, placement, state), state.actor)
        self._port = port_of(program, state, placement)
        keys = jax.random.split(jax.random.key(1), group_size(program))
        # A single update has no axis of the group, as in the executors.
        key = keys if len(keys) > 1 else keys[0]
        self._prioritised = prioritised(program)
        self._key = jax.device_put(key, placement.index())
        self._learn_key = np.asarray(jax.random.key_data(key))
        self._rollout = self._collect()
        while not self._port.can_sample():
            self._insert()
            self._rollout = self._collect()
        self._sample()
        self._learn()
        self._store_device = placement.storage()
        self._store = jax.device_put(state.replay.store, self._store_device)
        self._rows = jax.jit(replay.apart.rows)
        self._gather_rows = jax.jit(for_each_sample(replay.apart.gather))
        self._write_rows = jax.jit(replay.apart.write, static_argnums=2, donate_argnums=0)
        self.steps: dict[str, Callable[[], object]] = {
            "collect": self._collect,
            "insert": self._insert,
            "sample": self._sample,
            "update": self._update,
            "learn": self._learn,
            "sync": self._learner.publish,
            "write": self._write,
            "gather": self._gather,
        }

    def _collect(self) -> Rollout:
        self._iteration += 1
        return self._actor.collect(self._learner.version, self._iteration)

    def _insert(self) -> None:
        self._port.add(self._rollout.transitions)
        self._port.can_sample()  # waits for the update

    def _sample(self) -> None:
        self._drawn = self._port.sample(self._key, 0.5, self._gamma)
        self._batch = self._learner.load(self._drawn)

    def _update(self) -> None:
        if not self._prioritised:
            return  # nor do the executors
        self._port.update(without_batch(self._drawn), self._priorities)
        self._port.can_sample()  # waits for the update

    def _learn(self) -> None:
        self._priorities, _ = self._learner.learn(self._batch, self._learn_key)

    def _write(self) -> None:
        transitions = jax.device_put(self._rollout.transitions, self._store_device)
        items, added = self._rows(self._store, transitions, None)
        self._store = self._write_rows(self._store, items, added.steps)
        jax.block_until_ready(self._store)

    def _gather(self) -> None:
        slots = jax.device_put(self._drawn.indices, self._store_device)
        batch = self._gather_rows(self._store, slots, np.float32(self._gamma))
        self._learner.load(dataclasses.replace(self._drawn, batch=batch))
