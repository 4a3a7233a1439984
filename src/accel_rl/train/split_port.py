"""A replay memory whose index and store are on devices of their own, as a replay port."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax

from accel_rl.replay import Replay, ReplayState
from accel_rl.replay.replay import Added, Apart
from accel_rl.train.placement import placed
from accel_rl.train.ports import Held, HeldPort, first_state, for_each_key
from accel_rl.types import Array, ArrayLike, Sample


class SplitPort(HeldPort):
    """A memory on two devices of this process, as a `types.ReplayPort`.

    The index (insertion, sampling and updates of priorities, over slots) is on one of them, and the
    store (what slots hold) on the other. Slots and masks are all that goes between them. Results
    are those of a `LocalPort`. A sample's batch is on the store's device, the rest on the index's.

    Any number of threads may call any method. Calls change the state in place, one after the other.

    Args:
      replay: the memory's functions.
      hyper: of `replay.init`, such as alpha.
      index_device: where slots are drawn, and priorities kept.
      store_device: where transitions are kept, and batches put together.
      state: to go on from, wherever it lies, which is copied; an empty memory if None.

    Raises:
      TypeError: if a device is none.
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
        # A copy: what is given away must be nobody else's.
        own = ReplayState(
            jax.device_put(given.index, index_device, may_alias=False),
            jax.device_put(given.store, store_device, may_alias=False),
        )
        super().__init__(_held(replay.apart, index_device, store_device), own)


def for_each_sample(gather: Callable[..., Any]) -> Callable[..., Any]:
    """gather(store, slots [B], gamma) that takes slots [n, B], too, and then gives [n, B, ...]."""

    def call(store: Any, slots: Array, gamma: Any) -> Any:
        if slots.ndim == 1:
            return gather(store, slots, gamma)
        return jax.vmap(lambda each: gather(store, each, gamma))(slots)

    return call


@functools.lru_cache(maxsize=16)
def _held(apart: Apart, index_device: jax.Device, store_device: jax.Device) -> Held:
    """Each part's functions compiled for themselves, and what goes between them moved."""

    def insert_and_look(index: Any, added: Added) -> Any:
        index = apart.insert(index, added)
        return index, apart.can_sample(index)

    def update_and_look(index: Any, sample: Sample, priorities: Array) -> Any:
        index = apart.update(index, sample, priorities)
        return index, apart.can_sample(index)

    rows, draw = jax.jit(apart.rows), jax.jit(for_each_key(apart.draw))
    gather = jax.jit(for_each_sample(apart.gather))
    insert = jax.jit(insert_and_look, donate_argnums=0)
    write = jax.jit(apart.write, static_argnums=2, donate_argnums=0)
    change = jax.jit(update_and_look, donate_argnums=0)
    can_sample = jax.jit(apart.can_sample)

    def add(state: ReplayState, transitions: Any, priorities: Any) -> tuple[ReplayState, Array]:
        items, added = rows(state.store, transitions, priorities)
        # First the index, which refuses more steps than fit: then neither has changed.
        index, ready = insert(state.index, placed(added, index_device))
        return ReplayState(index, write(state.store, items, added.steps)), ready

    def sample(state: ReplayState, key: Array, beta: Any, gamma: Any) -> Sample:
        drawn = draw(state.index, key, beta)
        slots = placed(drawn.indices, store_device)
        return dataclasses.replace(drawn, batch=gather(state.store, slots, gamma))

    def update(state: ReplayState, sample: Sample, priorities: Any) -> tuple[ReplayState, Array]:
        index, ready = change(state.index, sample, priorities)
        return ReplayState(index, state.store), ready

    return Held(add, sample, update, lambda state: can_sample(state.index))
