"""Devices of the steps of a program."""

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, Sharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from accel_rl.types import PyTree

Devices: TypeAlias = jax.Device | Sequence[jax.Device] | None


@dataclasses.dataclass(frozen=True)
class Placement:
    """Devices of the pipelined executors; None: JAX's default device."""

    act: Devices = None  # several: assigned to actors round-robin
    replay: jax.Device | None = None
    # Several: data parallel over equal shards of the batch. Where some belong to other processes,
    # each process runs the program with its own shard: see docs/pipelined.md.
    learn: Devices = None
    store: jax.Device | None = None  # transitions of the replay buffer; None: as `replay`

    def __post_init__(self) -> None:
        """Raise ValueError for what is no device, or several where there is to be one."""
        for name in ("act", "replay", "learn", "store"):
            given = getattr(self, name)
            devices = given if isinstance(given, Sequence) and name in ("act", "learn") else [given]
            if given is not None and not (
                devices and all(isinstance(each, jax.Device) for each in devices)
            ):
                raise ValueError(f"placement.{name} must be of jax.Device, got {given!r}")

    def actor(self, number: int) -> jax.Device:
        """Return the device of an actor."""
        devices = _devices(self.act)
        return devices[number % len(devices)]

    def index(self) -> jax.Device:
        """Return the device of the replay buffer, or of its index if the store has another."""
        return _devices(self.replay)[0]

    def storage(self) -> jax.Device:
        """Return the device of the replay buffer's store."""
        return self.index() if self.store is None else self.store

    def learner(self, grouped: bool = False) -> tuple[Sharding, Sharding]:
        """Return the shardings of the learner's state and of its batches, or groups of batches."""
        devices = _devices(self.learn)
        if len(devices) == 1:
            return (SingleDeviceSharding(devices[0]),) * 2
        mesh = Mesh(np.array(devices), ("batch",), axis_types=(AxisType.Auto,))
        parts = P(None, "batch") if grouped else P("batch")
        return NamedSharding(mesh, P()), NamedSharding(mesh, parts)


def place(tree: PyTree, where: jax.Device | Sharding) -> PyTree:
    """Move a pytree to a device or sharding; return it as it is where nothing has to move."""
    # `jax.device_put` takes tens of microseconds also where nothing has to move.
    there = SingleDeviceSharding(where) if isinstance(where, jax.Device) else where
    for leaf in jax.tree.leaves(tree):
        if not isinstance(leaf, jax.Array) or not leaf.committed or leaf.sharding != there:
            return jax.device_put(tree, where)
    return tree


def to_global(tree: PyTree, where: Sharding) -> PyTree:
    """Make arrays over all processes' devices from this process's data.

    That is the whole array where the sharding replicates, else this process's shard of the batch.
    """

    def globally(leaf: PyTree) -> jax.Array:
        return jax.make_array_from_process_local_data(where, np.asarray(leaf))

    return jax.tree.map(globally, tree)


def local_replica(tree: PyTree) -> PyTree:
    """Return this process's copy of replicated arrays."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0), tree)


def local_shard(array: jax.Array) -> np.ndarray:
    """Return this process's shard of an array that is sharded along its last axis."""
    parts = sorted(array.addressable_shards, key=lambda part: part.index[-1].start or 0)
    return np.concatenate([np.asarray(part.data) for part in parts], axis=-1)


def _devices(devices: Devices) -> Sequence[jax.Device]:
    if devices is None:
        return list(jnp.zeros(()).devices())
    return devices if isinstance(devices, Sequence) else [devices]
