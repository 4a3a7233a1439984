"""Which devices the steps of a program run on."""

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, Sharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

Devices: TypeAlias = jax.Device | Sequence[jax.Device] | None


@dataclasses.dataclass(frozen=True)
class Placement:
    """Devices of the pipelined executor; None: JAX's default device."""

    act: Devices = None  # several: actors take them in turn
    replay: jax.Device | None = None
    # Several: each learns from an equal part of the batch. Where some are other processes', each
    # process runs the program with its own part of the batch: see docs/pipelined.md.
    learn: Devices = None
    store: jax.Device | None = None  # what slots of the memory hold; None: as `replay`

    def __post_init__(self) -> None:
        """Raises ValueError of what is no device, or several where there is to be one."""
        for name in ("act", "learn"):
            if getattr(self, name) is not None:
                _devices(name, getattr(self, name))
        for name in ("replay", "store"):
            device = getattr(self, name)
            if device is not None and not isinstance(device, jax.Device):
                raise ValueError(f"placement.{name} must be a device, got {device!r}")

    def actor(self, number: int) -> jax.Device:
        """The device of an actor."""
        devices = _devices("act", self.act)
        return devices[number % len(devices)]

    def memory(self) -> jax.Device:
        """The device of the replay memory; of its index, if the store has another."""
        return _devices("replay", self.replay)[0]

    def storage(self) -> jax.Device:
        """The device of the replay memory's store."""
        return self.memory() if self.store is None else _devices("store", self.store)[0]

    def learner(self, grouped: bool = False) -> tuple[Sharding, Sharding]:
        """How the learner's state and its batches, or groups of them, lie on its devices."""
        devices = _devices("learn", self.learn)
        if len(devices) == 1:
            return (SingleDeviceSharding(devices[0]),) * 2
        mesh = Mesh(np.array(devices), ("batch",), axis_types=(AxisType.Auto,))
        parts = P(None, "batch") if grouped else P("batch")
        return NamedSharding(mesh, P()), NamedSharding(mesh, parts)


def placed(tree: Any, where: jax.Device | Sharding) -> Any:
    """The tree there: as `jax.device_put`, which is slow also where there is nothing to move."""
    there = SingleDeviceSharding(where) if isinstance(where, jax.Device) else where
    for leaf in jax.tree.leaves(tree):
        if not isinstance(leaf, jax.Array) or not leaf.committed or leaf.sharding != there:
            return jax.device_put(tree, where)
    return tree


def spans_processes(where: Sharding) -> bool:
    """Whether some of its devices are other processes'."""
    return not where.is_fully_addressable


def from_here(tree: Any, where: Sharding) -> Any:
    """Arrays over all processes' devices, from what this process has of them.

    That is all of what is to be on every device, and else this process's part of the batch.
    """

    def placed(leaf: Any) -> jax.Array:
        return jax.make_array_from_process_local_data(where, np.asarray(leaf))

    return jax.tree.map(placed, tree)


def whole_here(tree: Any) -> Any:
    """This process's copy of arrays that all devices have."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0), tree)


def part_here(array: jax.Array) -> np.ndarray:
    """This process's part of an array that is split along its last axis."""
    parts = sorted(array.addressable_shards, key=lambda part: part.index[-1].start or 0)
    return np.concatenate([np.asarray(part.data) for part in parts], axis=-1)


def _devices(name: str, devices: Devices) -> list[jax.Device]:
    if devices is None:
        return list(jnp.zeros(()).devices())
    found = list(devices) if isinstance(devices, Sequence) else [devices]
    if not found or not all(isinstance(each, jax.Device) for each in found):
        raise ValueError(f"placement.{name} must be a device or several, got {devices!r}")
    return found
