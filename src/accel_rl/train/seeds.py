"""Batches of independent trainings: seeds and hyper-parameters as leading axes."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as P

from accel_rl.arguments import one_of, whole
from accel_rl.types import PyTree

STRATEGIES = ("auto", "vmap", "batched", "sharded")
# "auto" on a CPU: trainings at a time, and the most values in the arguments of one. States have
# more, and batches copy their arguments.
_FEW, _MANY, _VALUES = 8, 16, 256


def over_seeds(
    fn: Callable[..., PyTree],
    strategy: str = "auto",
    *,
    in_axes: int | Sequence[int | None] = 0,
    seed_batch: int | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> Callable[..., PyTree]:
    """Map a function of one training over many, under `jit`.

    Keys do not depend on the strategy; results differ only by the rounding of batched matrix
    products.

    Args:
      fn: a pure function of positional arguments, such as `fused` returns.
      strategy: "vmap": all in one batch, on one device. "batched": `seed_batch` at a time, which
        bounds memory. "sharded": a share on each device, in seed batches if `seed_batch` is given;
        on a CPU this is the fastest, with a JAX device for each core
        (`XLA_FLAGS=--xla_force_host_platform_device_count=2`). "auto": sharded where there are
        several devices and seeds, else vmap; on CPUs 8 to 16 at a time, which stay in the caches,
        if that divides their number and the arguments are small, such as keys and
        hyper-parameters.
      in_axes: for each argument, or for all: 0 if its leaves have a leading axis of seeds, None if
        all trainings share it.
      seed_batch: trainings at a time on a device; all if None. Only for "batched" and "sharded".
      devices: to shard over; those of the default backend if None. As many are used as divide the
        number of seeds.

    Returns:
      The function; its results have the leading axis.
    """
    one_of("strategy", strategy, STRATEGIES)
    if seed_batch is not None:
        whole("seed_batch", seed_batch, 1)
    if strategy != "sharded" and (strategy == "batched") != (seed_batch is not None):
        raise ValueError(
            "strategy 'batched' needs seed_batch, the trainings at a time, and 'sharded' may have "
            f"it; got {strategy!r} with seed_batch={seed_batch}"
        )

    def mapped(*args: PyTree) -> PyTree:
        axes = _axes(in_axes, args)
        leaves = jax.tree.leaves([arg for arg, axis in zip(args, axes, strict=True) if axis == 0])
        num = np.shape(leaves[0])[0]
        mesh = _mesh(num if strategy in ("auto", "sharded") else 1, devices)
        size = _in_caches(leaves, num // mesh.size, mesh) if strategy == "auto" else seed_batch
        batched = jax.vmap(fn, axes) if size is None else _in_batches(fn, axes, size)
        if mesh.size == 1 and strategy != "sharded":
            return batched(*args)
        specs = tuple(P() if axis is None else P("seeds") for axis in axes)
        return jax.shard_map(
            batched, mesh=mesh, in_specs=specs, out_specs=P("seeds"), check_vma=False
        )(*args)

    return mapped


def _axes(in_axes: int | Sequence[int | None], args: Sequence[PyTree]) -> tuple[int | None, ...]:
    axes = (in_axes,) * len(args) if isinstance(in_axes, int) else tuple(in_axes)
    if len(axes) != len(args) or set(axes) - {0, None} or 0 not in axes:
        raise ValueError(
            f"in_axes must be 0, or 0 or None for each of {len(args)} arguments, got {in_axes}"
        )
    return axes


def _in_caches(leaves: Sequence[Any], num: int, mesh: Mesh) -> int | None:
    """Return how many of a device's trainings to take at a time; None for all."""
    values = sum(math.prod(np.shape(leaf)[1:]) for leaf in leaves)
    if mesh.devices.flat[0].platform != "cpu" or num <= _MANY or values > _VALUES:
        return None
    return next((size for size in range(_MANY, _FEW - 1, -1) if num % size == 0), None)


def _in_batches(
    fn: Callable[..., PyTree], axes: Sequence[int | None], seed_batch: int
) -> Callable[..., PyTree]:
    def run(*args: PyTree) -> PyTree:
        mapped = tuple(arg for arg, axis in zip(args, axes, strict=True) if axis == 0)

        def one(mapped: PyTree) -> PyTree:
            each = iter(mapped)
            return fn(
                *(next(each) if axis == 0 else arg for arg, axis in zip(args, axes, strict=True))
            )

        return jax.lax.map(one, mapped, batch_size=seed_batch)

    return run


def _mesh(num: int, devices: Sequence[jax.Device] | None) -> Mesh:
    found = list(jax.devices() if devices is None else devices)
    count = max(n for n in range(1, len(found) + 1) if num % n == 0)
    return Mesh(np.array(found[:count]), ("seeds",), axis_types=(AxisType.Auto,))
