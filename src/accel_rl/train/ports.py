"""Replay memories of this process behind the interface of a replay port."""

import dataclasses
import functools
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from accel_rl.arguments import instance
from accel_rl.replay import Replay, ReplayState
from accel_rl.train.placement import placed
from accel_rl.types import Array, ArrayLike, Sample, Transition


class Held(NamedTuple):
    """What a port does with its memory's state; what changes it also says whether it has samples.

    States that `add` and `update` are given, they give away.
    """

    add: Callable[..., tuple[ReplayState, Array]]  # (state, transitions, priorities or None)
    sample: Callable[..., Sample]  # (state, key, beta, gamma)
    update: Callable[..., tuple[ReplayState, Array]]  # (state, sample, priorities)
    can_sample: Callable[[ReplayState], Array]


class HeldPort:
    """A memory in this process, as a `types.ReplayPort`.

    Any number of threads may call any method. Calls change the state in place, one after the other.

    Args:
      held: what is done with the state.
      state: on its devices, and nobody else's.
    """

    limited = False

    def __init__(self, held: Held, state: ReplayState) -> None:
        self._held, self._state = held, state
        self._changed = threading.Condition()
        self._open = True
        (self._index_device,) = state.index.cursor.row.devices()
        (self._store_device,) = state.store.cursor.row.devices()
        self._ready: Any = held.can_sample(state)

    @property
    def state(self) -> ReplayState:
        """The memory's state, where it lies; the next `add` or `update` gives its arrays away."""
        return self._state

    def add(self, transitions: Transition, priorities: ArrayLike | None = None) -> None:
        """Adds steps, leaves [envs, ...] or [steps, envs, ...]; priorities [envs], [steps, envs].

        Raises:
          ValueError: if shapes do not fit.
          TypeError: if dtypes do not fit.
          RuntimeError: if the port is closed.
        """
        transitions, priorities = placed((transitions, priorities), self._store_device)
        with self._changed:
            self._check_open()
            self._state, self._ready = self._held.add(self._state, transitions, priorities)
            self._changed.notify_all()

    def can_sample(self) -> bool:
        """Whether `sample` would answer at once.

        Raises:
          RuntimeError: if the port is closed.
        """
        with self._changed:
            self._check_open()
            return self._is_ready()

    def sample(self, key: Array, beta: float, gamma: float) -> Sample:
        """A sample, its leaves where the memory's are; waits until there is one.

        Args:
          key: all the randomness there is in it; or keys [n], for n samples, leaves [n, ...].
          beta: exponent of importance weights, finite, at least 0.
          gamma: discount factor, 0 to 1.

        Raises:
          ValueError: if a number is out of range.
          RuntimeError: if the port is closed, also while waiting.
        """
        check_sampling(beta, gamma)
        if key.devices() != {self._index_device}:
            key = jax.device_put(key, self._index_device)
        with self._changed:
            self._check_open()
            while not self._is_ready():
                self._changed.wait()
                self._check_open()
            return self._held.sample(self._state, key, np.float32(beta), np.float32(gamma))

    def update(self, sample: Sample, priorities: ArrayLike) -> None:
        """New priorities [B] of what was sampled; its batch may be None.

        Raises:
          ValueError: if shapes do not fit.
          RuntimeError: if the port is closed.
        """
        sample = dataclasses.replace(sample, batch=None)
        sample, priorities = placed((sample, priorities), self._index_device)
        with self._changed:
            self._check_open()
            self._state, self._ready = self._held.update(self._state, sample, priorities)
            self._changed.notify_all()

    def close(self) -> None:
        """Ends calls that wait with an error; may be called again. `state` stays."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _is_ready(self) -> bool:
        self._ready = bool(self._ready)  # waited for and read once, however often it is asked
        return self._ready

    def _check_open(self) -> None:
        if not self._open:
            raise RuntimeError("the replay port is closed")


def check_sampling(beta: float, gamma: float) -> None:
    """Raises ValueError if an exponent of importance weights or a discount is out of range."""
    if not 0 <= beta < math.inf:
        raise ValueError(f"beta must be finite and at least 0, got {beta}")
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma must be from 0 to 1, got {gamma}")


class LocalPort(HeldPort):
    """A memory on a device of this process, as a `types.ReplayPort`.

    Any number of threads may call any method. Calls change the state in place, one after the other.

    Args:
      replay: the memory's functions.
      hyper: of `replay.init`, such as alpha.
      device: where the state lives; the default device if None.
      state: to go on from, which is copied; an empty memory if None.

    Raises:
      TypeError: if it is no memory, or the device none.
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
        if device is not None:
            instance("device", device, jax.Device)
        own_state = first_state(replay, hyper, state)
        functions = replay.add, replay.sample, replay.update, replay.can_sample
        # A copy: what is given away must be nobody else's.
        own = jax.device_put(own_state, device, may_alias=False)
        super().__init__(_compiled(*functions), own)


def first_state(
    replay: Replay, hyper: Mapping[str, ArrayLike] | None, state: ReplayState | None
) -> ReplayState:
    """The state given, or that of an empty memory; raises ValueError if both are asked for."""
    instance("replay", replay, Replay, "replay.make makes one")
    if state is not None and hyper:
        raise ValueError(f"hyper-parameters are the state's where one is given, got {hyper}")
    return replay.init(**(hyper or {})) if state is None else state


def for_each_key(draw: Callable[..., Any]) -> Callable[..., Any]:
    """draw(state, key, ...) that takes keys [n], too, and then gives leaves [n, ...]."""

    def call(state: Any, key: Array, *args: Any) -> Any:
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
) -> Held:
    """Of a memory's functions."""

    def add_and_look(state: ReplayState, transitions: Any, priorities: Any) -> Any:
        state = add(state, transitions, priorities)
        return state, can_sample(state)

    def update_and_look(state: ReplayState, sample: Sample, priorities: Array) -> Any:
        state = update(state, sample, priorities)
        return state, can_sample(state)

    return Held(
        jax.jit(add_and_look, donate_argnums=0),
        jax.jit(for_each_key(sample)),
        jax.jit(update_and_look, donate_argnums=0),
        jax.jit(can_sample),
    )
