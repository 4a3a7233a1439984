"""Replay buffers of this process as replay ports, on one device or on two."""

import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from accel_rl.arguments import within
from accel_rl.replay import Replay, ReplayState
from accel_rl.replay.replay import Apart
from accel_rl.train.pipeline.placement import Placement, place
from accel_rl.train.program import Program
from accel_rl.train.state import TrainState
from accel_rl.types import Array, ArrayLike, PyTree, Sample, Transition


class BufferFunctions(NamedTuple):
    """Compiled functions of a buffer; `add` and `update` also return whether it can be sampled.

    `add` and `update` donate the state.
    """

    add: Callable[..., tuple[ReplayState, Array]]  # (state, transitions, priorities or None)
    sample: Callable[..., Sample]  # (state, key, beta, gamma)
    update: Callable[..., tuple[ReplayState, Array]]  # (state, sample, priorities)
    can_sample: Callable[[ReplayState], Array]


class BufferPort:
    """Replay buffer of this process as a `types.ReplayPort`.

    Thread-safe: a lock serialises calls, which update the state in place. After `close` they raise
    RuntimeError.

    Args:
      functions: of the buffer.
      state: on its devices; must not be aliased, as it is donated.
    """

    limited = False

    def __init__(self, functions: BufferFunctions, state: ReplayState) -> None:
        self._functions, self._state = functions, state
        self._changed = threading.Condition()
        self._open = True
        (self._index_device,) = state.index.cursor.row.devices()
        (self._store_device,) = state.store.cursor.row.devices()
        self._ready: Any = functions.can_sample(state)

    @property
    def state(self) -> ReplayState:
        """Present state of the buffer; the next `add` or `update` donates it."""
        return self._state

    def add(self, transitions: Transition, priorities: ArrayLike | None = None) -> None:
        """Add transitions, leaves [E, ...] or [T, E, ...], with priorities [E] or [T, E]."""
        transitions, priorities = place((transitions, priorities), self._store_device)
        with self._changed:
            self._check_open()
            self._state, self._ready = self._functions.add(self._state, transitions, priorities)
            self._changed.notify_all()

    def can_sample(self) -> bool:
        """Return whether `sample` would return at once."""
        with self._changed:
            self._check_open()
            return self._is_ready()

    def sample(self, key: Array, beta: float, gamma: float) -> Sample:
        """Sample a batch on the buffer's device; wait until the buffer can be sampled.

        Args:
          key: PRNG key; or keys [n] for n samples, leaves [n, ...].
          beta: exponent of importance-sampling weights, finite, at least 0.
          gamma: discount factor, 0 to 1.
        """
        check_sampling(beta, gamma)
        if key.devices() != {self._index_device}:
            key = jax.device_put(key, self._index_device)
        with self._changed:
            self._check_open()
            # `wait` releases the lock, so that `add` can make the buffer ready.
            while not self._is_ready():
                self._changed.wait()
                self._check_open()
            return self._functions.sample(self._state, key, np.float32(beta), np.float32(gamma))

    def update(self, sample: Sample, priorities: ArrayLike) -> None:
        """Update the priorities [B] of a sample, whose batch may be None."""
        sample = dataclasses.replace(sample, batch=None)
        sample, priorities = place((sample, priorities), self._index_device)
        with self._changed:
            self._check_open()
            self._state, self._ready = self._functions.update(self._state, sample, priorities)
            self._changed.notify_all()

    def close(self) -> None:
        """End waiting calls with an error; `state` remains. Idempotent."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _is_ready(self) -> bool:
        self._ready = bool(self._ready)  # transferred once, however often it is read
        return self._ready

    def _check_open(self) -> None:
        if not self._open:
            raise RuntimeError("the replay port is closed")


def check_sampling(beta: float, gamma: float) -> None:
    """Raise ValueError if beta or gamma is out of range."""
    within("beta", beta, "[0, inf)")
    within("gamma", gamma, "[0, 1]")


class LocalPort(BufferPort):
    """Replay buffer on one device of this process, as a `types.ReplayPort`.

    Thread-safe: a lock serialises calls, which update the state in place.

    Args:
      replay: functions of the buffer.
      state: initial state, which is copied; `replay.init()` if None.
      device: of the state; the default device if None.
    """

    def __init__(
        self,
        replay: Replay,
        state: ReplayState | None = None,
        *,
        device: jax.Device | None = None,
    ) -> None:
        state = replay.init() if state is None else state
        functions = replay.add, replay.sample, replay.update, replay.can_sample
        # A copy: donated buffers must not be aliased.
        own = jax.device_put(state, device, may_alias=False)
        super().__init__(_compiled(*functions), own)


def for_each_key(draw: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Let draw(state, key, ...) also take keys [n], and return leaves [n, ...]."""

    def call(state: PyTree, key: Array, *args: PyTree) -> PyTree:
        if key.ndim == 0:
            return draw(state, key, *args)
        return jax.vmap(lambda key: draw(state, key, *args))(key)

    return call


@functools.lru_cache(maxsize=16)
def _compiled(
    add: Callable[..., ReplayState],
    sample: Callable[..., Sample],
    update: Callable[..., ReplayState],
    can_sample: Callable[..., Array],
) -> BufferFunctions:
    add = functools.partial(add, batch_major=False)
    return BufferFunctions(
        _and_check(add, can_sample),
        jax.jit(for_each_key(sample)),
        _and_check(update, can_sample),
        jax.jit(can_sample),
    )


def _and_check(
    change: Callable[..., PyTree], can_sample: Callable[..., Array]
) -> Callable[..., PyTree]:
    """Compile a function that returns a new state, donating the old; return `can_sample`, too."""

    def changed(state: PyTree, *args: PyTree) -> PyTree:
        state = change(state, *args)
        return state, can_sample(state)

    return jax.jit(changed, donate_argnums=0)


class SplitPort(BufferPort):
    """Replay buffer on two devices of this process, as a `types.ReplayPort`.

    The index (insertion, sampling and priority updates over slots) is on one device, and the store
    (transitions) on the other. Only slots and masks move between them. Results equal those of a
    `LocalPort`. A sample's batch is on the store's device, the rest on the index's.

    Thread-safe: a lock serialises calls, which update the state in place.

    Args:
      replay: functions of the buffer.
      state: initial state on any device, which is copied; `replay.init()` if None.
      index_device: draws slots and holds priorities.
      store_device: holds transitions and gathers batches.
    """

    def __init__(
        self,
        replay: Replay,
        state: ReplayState | None = None,
        *,
        index_device: jax.Device,
        store_device: jax.Device,
    ) -> None:
        given = replay.init() if state is None else state
        # A copy: donated buffers must not be aliased.
        own = ReplayState(
            jax.device_put(given.index, index_device, may_alias=False),
            jax.device_put(given.store, store_device, may_alias=False),
        )
        super().__init__(_compiled_apart(replay.apart, index_device, store_device), own)


def for_each_sample(gather: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Let gather(store, slots [B], gamma) also take slots [n, B], and return [n, B, ...]."""

    def call(store: PyTree, slots: Array, gamma: PyTree) -> PyTree:
        if slots.ndim == 1:
            return gather(store, slots, gamma)
        return jax.vmap(lambda each: gather(store, each, gamma))(slots)

    return call


@functools.lru_cache(maxsize=16)
def _compiled_apart(
    apart: Apart, index_device: jax.Device, store_device: jax.Device
) -> BufferFunctions:
    """Compile index and store apart, and move slots and masks between them."""
    rows, draw = jax.jit(apart.rows), jax.jit(for_each_key(apart.draw))
    gather = jax.jit(for_each_sample(apart.gather))
    insert = _and_check(apart.insert, apart.can_sample)
    write = jax.jit(apart.write, static_argnums=2, donate_argnums=0)
    change = _and_check(apart.update, apart.can_sample)
    can_sample = jax.jit(apart.can_sample)

    def add(
        state: ReplayState, transitions: PyTree, priorities: PyTree
    ) -> tuple[ReplayState, Array]:
        items, added = rows(state.store, transitions, priorities)
        # The index first: it refuses too many steps, and then neither part has changed.
        index, ready = insert(state.index, place(added, index_device))
        return ReplayState(index, write(state.store, items, added.steps)), ready

    def sample(state: ReplayState, key: Array, beta: PyTree, gamma: PyTree) -> Sample:
        drawn = draw(state.index, key, beta)
        slots = place(drawn.indices, store_device)
        return dataclasses.replace(drawn, batch=gather(state.store, slots, gamma))

    def update(state: ReplayState, sample: Sample, priorities: PyTree) -> tuple[ReplayState, Array]:
        index, ready = change(state.index, sample, priorities)
        return ReplayState(index, state.store), ready

    return BufferFunctions(add, sample, update, lambda state: can_sample(state.index))


def port_of(program: Program, state: TrainState, placement: Placement) -> PyTree:
    """Return the buffer as a port on its device or devices."""
    buffer, index, store = program.buffer, placement.index(), placement.storage()
    if not isinstance(buffer, Replay):
        return buffer
    if index == store:
        return LocalPort(buffer, state.replay, device=index)
    return SplitPort(buffer, state.replay, index_device=index, store_device=store)
