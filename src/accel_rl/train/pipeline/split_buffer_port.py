"""Replay buffer whose index and store are on different devices, as a replay port."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

import jax

from accel_rl.replay import Replay, ReplayState
from accel_rl.replay.replay import Added, Apart
from accel_rl.train.pipeline.buffer_ports import (
    BufferFunctions,
    BufferPort,
    first_state,
    for_each_key,
)
from accel_rl.train.pipeline.placement import place
from accel_rl.types import Array, ArrayLike, PyTree, Sample


class SplitPort(BufferPort):
    """Replay buffer on two devices of this process, as a `types.ReplayPort`.

    The index (insertion, sampling and priority updates over slots) is on one device, and the store
    (transitions) on the other. Only slots and masks move between them. Results equal those of a
    `LocalPort`. A sample's batch is on the store's device, the rest on the index's.

    Thread-safe: a lock serialises calls, which update the state in place.

    Args:
      replay: functions of the buffer.
      hyper: of `replay.init`, such as alpha.
      index_device: draws slots and holds priorities.
      store_device: holds transitions and gathers batches.
      state: initial state on any device, which is copied; an empty buffer if None.

    Raises:
      ValueError: if hyper-parameters are given with a state.
    """

    def __init__(
        self,
        replay: Replay,
        hyper: Mapping[str, ArrayLike] | None = None,
        *,
        index_device: jax.Device,
        store_device: jax.Device,
        state: ReplayState | None = None,
    ) -> None:
        for name, device in (("index_device", index_device), ("store_device", store_device)):
            if not isinstance(device, jax.Device):
                raise TypeError(f"{name} must be a jax.Device, got {device!r}")
        given = first_state(replay, hyper, state)
        # A copy: donated buffers must not be aliased.
        own = ReplayState(
            jax.device_put(given.index, index_device, may_alias=False),
            jax.device_put(given.store, store_device, may_alias=False),
        )
        super().__init__(_compiled(replay.apart, index_device, store_device), own)


def for_each_sample(gather: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Let gather(store, slots [B], gamma) also take slots [n, B], and return [n, B, ...]."""

    def call(store: PyTree, slots: Array, gamma: PyTree) -> PyTree:
        if slots.ndim == 1:
            return gather(store, slots, gamma)
        return jax.vmap(lambda each: gather(store, each, gamma))(slots)

    return call


@functools.lru_cache(maxsize=16)
def _compiled(apart: Apart, index_device: jax.Device, store_device: jax.Device) -> BufferFunctions:
    """Compile index and store apart, and move slots and masks between them."""

    def insert_and_check(index: PyTree, added: Added) -> PyTree:
        index = apart.insert(index, added)
        return index, apart.can_sample(index)

    def update_and_check(index: PyTree, sample: Sample, priorities: Array) -> PyTree:
        index = apart.update(index, sample, priorities)
        return index, apart.can_sample(index)

    rows, draw = jax.jit(apart.rows), jax.jit(for_each_key(apart.draw))
    gather = jax.jit(for_each_sample(apart.gather))
    insert = jax.jit(insert_and_check, donate_argnums=0)
    write = jax.jit(apart.write, static_argnums=2, donate_argnums=0)
    change = jax.jit(update_and_check, donate_argnums=0)
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
