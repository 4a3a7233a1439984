"""A replay memory of this process behind the interface of a replay port."""

import dataclasses
import functools
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from accel_rl.replay import Replay, ReplayState
from accel_rl.types import Array, ArrayLike, Sample, Transition


class LocalPort:
    """A memory on a device of this process, as a `types.ReplayPort`.

    Any number of threads may call any method. Calls change the state in place, one after the other.

    Args:
      replay: the memory's functions.
      hyper: of `replay.init`, such as alpha.
      device: where the state lives; the default device if None.
      state: to go on from, which is copied; an empty memory if None.

    Raises:
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
        if state is not None and hyper:
            raise ValueError(f"hyper-parameters are the state's where one is given, got {hyper}")
        functions = replay.add, replay.sample, replay.update, replay.can_sample
        self._add, self._sample, self._update, can_sample = _compiled(*functions)
        self._changed = threading.Condition()
        self._open = True
        given = replay.init(**(hyper or {})) if state is None else state
        # A copy: what is given away must be nobody else's.
        self._state = jax.device_put(given, device, may_alias=False)
        (self._device,) = jax.tree.leaves(self._state)[0].devices()
        self._ready = can_sample(self._state)

    @property
    def state(self) -> ReplayState:
        """The memory's state; the next `add` or `update` gives its arrays away."""
        return self._state

    def add(self, transitions: Transition, priorities: ArrayLike | None = None) -> None:
        """Adds steps, leaves [envs, ...] or [steps, envs, ...]; priorities [envs], [steps, envs].

        Raises:
          ValueError: if shapes do not fit.
          TypeError: if dtypes do not fit.
          RuntimeError: if the port is closed.
        """
        transitions, priorities = jax.device_put((transitions, priorities), self._device)
        with self._changed:
            self._check_open()
            self._state, self._ready = self._add(self._state, transitions, priorities)
            self._changed.notify_all()

    def can_sample(self) -> bool:
        """Whether `sample` would answer at once.

        Raises:
          RuntimeError: if the port is closed.
        """
        with self._changed:
            self._check_open()
            return bool(self._ready)

    def sample(self, key: Array, beta: float, gamma: float) -> Sample:
        """A sample, its leaves on the memory's device; waits until there is one.

        Args:
          key: all the randomness there is in it.
          beta: exponent of importance weights, finite, at least 0.
          gamma: discount factor, 0 to 1.

        Raises:
          ValueError: if a number is out of range.
          RuntimeError: if the port is closed, also while waiting.
        """
        if not 0 <= beta < math.inf:
            raise ValueError(f"beta must be finite and at least 0, got {beta}")
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma must be from 0 to 1, got {gamma}")
        key = jax.device_put(key, self._device)
        with self._changed:
            self._check_open()
            while not bool(self._ready):
                self._changed.wait()
                self._check_open()
            return self._sample(self._state, key, np.float32(beta), np.float32(gamma))

    def update(self, sample: Sample, priorities: ArrayLike) -> None:
        """New priorities [B] of what was sampled; its batch may be None.

        Raises:
          ValueError: if shapes do not fit.
          RuntimeError: if the port is closed.
        """
        sample = dataclasses.replace(sample, batch=None)
        sample, priorities = jax.device_put((sample, priorities), self._device)
        with self._changed:
            self._check_open()
            self._state, self._ready = self._update(self._state, sample, priorities)
            self._changed.notify_all()

    def close(self) -> None:
        """Ends calls that wait with an error; may be called again. `state` stays."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _check_open(self) -> None:
        if not self._open:
            raise RuntimeError("the replay port is closed")


@functools.lru_cache(maxsize=16)
def _compiled(
    add: Callable[..., ReplayState],
    sample: Callable[..., Sample],
    update: Callable[..., ReplayState],
    can_sample: Callable[..., Array],
) -> tuple[Callable[..., Any], ...]:
    """Of a memory's functions; those that change it also say whether it can be sampled then."""

    def add_and_look(state: ReplayState, transitions: Any, priorities: Any) -> Any:
        state = add(state, transitions, priorities)
        return state, can_sample(state)

    def update_and_look(state: ReplayState, sample: Sample, priorities: Array) -> Any:
        state = update(state, sample, priorities)
        return state, can_sample(state)

    return (
        jax.jit(add_and_look, donate_argnums=0),
        jax.jit(sample),
        jax.jit(update_and_look, donate_argnums=0),
        jax.jit(can_sample),
    )
