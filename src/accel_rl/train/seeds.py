"""Batches of independent trainings: seeds and hyper-parameters as leading axes."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as P
from jax.typing import ArrayLike

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
    long: bool = False,
) -> Callable[..., PyTree]:
    """Map a function of one training over many, under `jit`.

    Keys do not depend on the strategy; results differ only by the rounding of batched matrix
    products.

    Args:
      fn: a pure function of positional arguments, such as `fused` returns.
      strategy: "vmap": all in one batch, on one device. "batched": `seed_batch` at a time, which
        bounds the memory of what is not an argument or a result. "sharded": a share on each device,
        in seed batches if `seed_batch` is given; on a CPU this is the fastest, with a JAX device
        for each core (`XLA_FLAGS=--xla_force_host_platform_device_count=2`). "auto": sharded where
        there are several devices and seeds, else batched if `seed_batch` is given, else vmap;
        without `seed_batch`, CPUs take 8 to 16 at a time, which stay in the caches, if that divides
        their number and the arguments are small, such as keys and hyper-parameters, or `long`.
      in_axes: for each argument, or for all: 0 if its leaves have a leading axis of seeds, None if
        all trainings share it.
      seed_batch: trainings at a time on a device; each call copies what they are given and return.
        All if None, which "batched" refuses; "vmap" refuses a number.
      devices: to shard over; those of the default backend if None. As many are used as divide the
        number of seeds.
      long: true if a call takes so long that it may copy states.

    Returns:
      The function; its results have the leading axis.
    """
    one_of("strategy", strategy, STRATEGIES)
    if seed_batch is not None:
        whole("seed_batch", seed_batch, 1)
    if (strategy, seed_batch is None) in (("batched", True), ("vmap", False)):
        raise ValueError(
            "strategy 'batched' needs seed_batch, the trainings at a time, and 'vmap' has none; "
            f"got {strategy!r} with seed_batch={seed_batch}"
        )

    def mapped(*args: PyTree) -> PyTree:
        axes = _axes(in_axes, args)
        leaves = jax.tree.leaves(_with_seeds(args, axes))
        num = np.shape(leaves[0])[0]
        mesh = _mesh(num if strategy in ("auto", "sharded") else 1, devices)
        size = seed_batch
        small = sum(math.prod(np.shape(leaf)[1:]) for leaf in leaves) <= _VALUES
        if strategy == "auto" and size is None and (small or long):
            size = _in_caches(num // mesh.size, mesh)
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


def _with_seeds(args: Sequence[PyTree], axes: Sequence[int | None]) -> list[PyTree]:
    """Return the arguments whose leaves have an axis of seeds."""
    return [arg for arg, axis in zip(args, axes, strict=True) if axis == 0]


def _in_caches(num: int, mesh: Mesh) -> int | None:
    """Return how many of a device's trainings to take at a time; None for all."""
    if mesh.devices.flat[0].platform != "cpu" or num <= _MANY:
        return None
    return next((size for size in range(_MANY, _FEW - 1, -1) if num % size == 0), None)


def _in_batches(
    fn: Callable[..., PyTree], axes: Sequence[int | None], size: int
) -> Callable[..., PyTree]:
    """Map in a loop over batches; results overwrite arguments, so that states are held once."""

    def run(*args: PyTree) -> PyTree:
        mapped, tree = jax.tree.flatten(_with_seeds(args, axes))
        num = np.shape(mapped[0])[0]

        def one(leaves: Sequence[Array]) -> PyTree:
            each = iter(jax.tree.unflatten(tree, leaves))
            given = (next(each) if axis == 0 else a for a, axis in zip(args, axes, strict=True))
            return jax.vmap(fn, axes)(*given)

        made, result = jax.tree.flatten(jax.eval_shape(one, mapped))
        places = _places([jax.typeof(leaf) for leaf in mapped], made)

        def batch(
            held: Sequence[Array], start: ArrayLike, size: int = size
        ) -> tuple[list[Array], list[Array]]:
            taken = [jax.lax.dynamic_slice_in_dim(leaf, start, size) for leaf in held]
            kept, others = list(held), []
            for leaf, place in zip(jax.tree.leaves(one(taken)), places, strict=True):
                if place is None:
                    others.append(leaf)
                else:
                    kept[place] = jax.lax.dynamic_update_slice_in_dim(kept[place], leaf, start, 0)
            return kept, others

        end = num // size * size
        held, others = jax.lax.scan(batch, list(map(jnp.asarray, mapped)), jnp.arange(0, end, size))
        others = [leaf.reshape(end, *leaf.shape[2:]) for leaf in others]
        if end < num:
            held, last = batch(held, end, num - end)
            others = [jnp.concatenate(pair) for pair in zip(others, last, strict=True)]
        rest = iter(others)
        leaves = (next(rest) if place is None else held[place] for place in places)
        return jax.tree.unflatten(result, leaves)

    return run


def _places(given: Sequence[Any], made: Sequence[Any]) -> list[int | None]:
    """Return for each result which argument of its shape and dtype it overwrites, each once."""
    free, places = list(range(len(given))), []
    for each in made:
        alike = (n for n in free if (given[n].shape, given[n].dtype) == (each.shape, each.dtype))
        places.append(next(alike, None))
        if places[-1] is not None:
            free.remove(places[-1])
    return places


def _mesh(num: int, devices: Sequence[jax.Device] | None) -> Mesh:
    found = list(jax.devices() if devices is None else devices)
    count = max(n for n in range(1, len(found) + 1) if num % n == 0)
    return Mesh(np.array(found[:count]), ("seeds",), axis_types=(AxisType.Auto,))
