"""The parts of a pipelined training outside of it, so that each step can be taken by itself."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from accel_rl.train.actors import DeviceActor, Rollout, Seat, Setting
from accel_rl.train.groups import group_size, prioritised
from accel_rl.train.learning import Learner
from accel_rl.train.pipelined_arguments import port_of, state_of
from accel_rl.train.placement import Placement
from accel_rl.train.program import Program, without_batch
from accel_rl.train.split_port import for_each_sample


class Stand:
    """A training in the middle of learning, whose steps are taken on demand.

    What is timed here is what `pipelined` does: transfers between devices are part of the step
    whose worker makes them, and a step has ended when what it computed is there. `sample` and
    `learn` are of a group of updates where the executor takes them so, see `groups.group_size`.

    Args:
      program: its memory must be a `Replay`, its environment pure functions.
      placement: devices of its steps.
      hyper: arguments of `program.init`.

    Attributes:
      steps: the steps of a program by name, `collect`, `insert`, `sample`, `update`, `learn` and
        `sync`; and `write` and `gather`, the memory's store's part of `insert` and `sample`.
    """

    def __init__(self, program: Program, placement: Placement, hyper: Mapping[str, Any]) -> None:
        state = state_of(program, jax.random.key(0), hyper)
        replay = program.require_replay()
        self._gamma = float(jax.device_get(state.hyper["gamma"]))
        self._iteration = 0
        self._learner = Learner(program, state, placement, False, 0)
        setting = Setting(program, 1, 0, None)
        seat = Seat(
            setting, 0, placement.actor(0), jax.device_get(state.key), np.float32(self._gamma)
        )
        self._actor = DeviceActor(seat, state.actor)
        self._port = port_of(program, state, placement)
        keys = jax.random.split(jax.random.key(1), group_size(program))
        # Of a single update without an axis for the group, as the executor has it.
        key = keys if len(keys) > 1 else keys[0]
        self._prioritised = prioritised(program)
        self._key = jax.device_put(key, placement.memory())
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
        self.steps: dict[str, Callable[[], Any]] = {
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
        self._port.can_sample()  # which waits for what was changed

    def _sample(self) -> None:
        self._drawn = self._port.sample(self._key, 0.5, self._gamma)
        self._lesson = self._learner.lesson(self._drawn)

    def _update(self) -> None:
        if not self._prioritised:
            return  # the executor does not either
        self._port.update(without_batch(self._drawn), self._priorities)
        self._port.can_sample()  # which waits for what was changed

    def _learn(self) -> None:
        self._priorities, _ = self._learner.learn(self._lesson, self._learn_key)

    def _write(self) -> None:
        transitions = jax.device_put(self._rollout.transitions, self._store_device)
        items, added = self._rows(self._store, transitions, None)
        self._store = self._write_rows(self._store, items, added.steps)
        jax.block_until_ready(self._store)

    def _gather(self) -> None:
        slots = jax.device_put(self._drawn.indices, self._store_device)
        batch = self._gather_rows(self._store, slots, np.float32(self._gamma))
        self._learner.lesson(dataclasses.replace(self._drawn, batch=batch))
