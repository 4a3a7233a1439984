"""Replay buffers of this process as replay ports."""

import dataclasses
import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from accel_rl.arguments import within
from accel_rl.replay import Replay, ReplayState
from accel_rl.train.pipeline.placement import place
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

    Thread-safe: a lock serialises calls, which update the state in place.

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
        """Add transitions, leaves [E, ...] or [T, E, ...], with priorities [E] or [T, E].

        Raises:
          ValueError: if shapes differ from the buffer's.
          TypeError: if dtypes differ.
          RuntimeError: if the port is closed.
        """
        transitions, priorities = place((transitions, priorities), self._store_device)
        with self._changed:
            self._check_open()
            self._state, self._ready = self._functions.add(self._state, transitions, priorities)
            self._changed.notify_all()

    def can_sample(self) -> bool:
        """Return whether `sample` would return at once.

        Raises:
          RuntimeError: if the port is closed.
        """
        with self._changed:
            self._check_open()
            return self._is_ready()

    def sample(self, key: Array, beta: float, gamma: float) -> Sample:
        """Sample a batch on the buffer's device; wait until the buffer can be sampled.

        Args:
          key: PRNG key; or keys [n] for n samples, leaves [n, ...].
          beta: exponent of importance-sampling weights, finite, at least 0.
          gamma: discount factor, 0 to 1.

        Raises:
          RuntimeError: if the port is closed, also while waiting.
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
        """Update the priorities [B] of a sample, whose batch may be None.

        Raises:
          ValueError: if shapes differ.
          RuntimeError: if the port is closed.
        """
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
      hyper: of `replay.init`, such as alpha.
      device: of the state; the default device if None.
      state: initial state, which is copied; an empty buffer if None.

    Raises:
      TypeError: if `replay` is no `Replay`, or `device` no device.
      ValueError: if hyper-parameters are given with a state.
    """

    def __init__(
        self,
        replay: Replay,
        hyper: Mapping[str, ArrayLike] | None = None,
        *,
        device: jax.Device | None = None,
        state: ReplayState | None = None,
    ) -> None:
        own_state = first_state(replay, hyper, state)
        functions = replay.add, replay.sample, replay.update, replay.can_sample
        # A copy: donated buffers must not be aliased.
        own = jax.device_put(own_state, device, may_alias=False)
        super().__init__(_compiled(*functions), own)


def first_state(
    replay: Replay, hyper: Mapping[str, ArrayLike] | None, state: ReplayState | None
) -> ReplayState:
    """Return the given state or that of an empty buffer; raise ValueError for state and hyper."""
    if state is not None and hyper:
        raise ValueError(f"hyper-parameters are the state's where one is given, got {hyper}")
    return replay.init(**(hyper or {})) if state is None else state


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

    def add_and_check(state: ReplayState, transitions: PyTree, priorities: PyTree) -> PyTree:
        state = add(state, transitions, priorities)
        return state, can_sample(state)

    def update_and_check(state: ReplayState, sample: Sample, priorities: Array) -> PyTree:
        state = update(state, sample, priorities)
        return state, can_sample(state)

    return BufferFunctions(
        jax.jit(add_and_check, donate_argnums=0),
        jax.jit(for_each_key(sample)),
        jax.jit(update_and_check, donate_argnums=0),
        jax.jit(can_sample),
    )
