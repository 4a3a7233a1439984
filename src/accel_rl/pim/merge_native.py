"""Merge in C for CPUs, through XLA's FFI: signature and derivatives are those of `merge`.

INT32 is bit-identical to it. FP32 rounds as the semantics state: the kernels contract no product
and sum to one FMA, and keep subnormals, both of which XLA may not.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from accel_rl import native
from accel_rl.arguments import one_of, require_array
from accel_rl.pim import merge
from accel_rl.types import Array, PyTree

_TARGETS = {"float32": "accel_rl_merge_fp32", "int32": "accel_rl_merge_int32"}


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 5))
def merge_tables(
    name: str, tables: Array, base: Array, visits: Array, alpha: Array, bound: int
) -> Array:
    """Merge the DPUs' tables into one; see `merge.merge_tables`."""
    one_of("merge", name, merge.MERGES)
    one_of("dtype of tables", tables.dtype.name, _TARGETS)
    if tables.ndim != 2:
        raise ValueError(f"tables must have axes [D, E], got shape {tables.shape}")
    if tables.dtype == np.int32:
        merge.check_bound(name, bound)
    entries = tables.shape[1:]
    require_array("base", base, tables.dtype, entries)
    require_array("visits", visits, np.uint32, tables.shape)
    require_array("alpha", alpha, np.float32, ())
    if name == "mean":  # reads nothing else, so that XLA need not count visits
        return _merger(name)(tables[None])[0]
    return _merger(name)(tables[None], base[None], visits[None], merge.damped_unit(alpha)[None])[0]


@merge_tables.defjvp
def _differentiate(name: str, bound: int, primals: PyTree, tangents: PyTree) -> PyTree:
    return jax.jvp(functools.partial(merge.merge_tables, name, bound=bound), primals, tangents)


@functools.cache
def _merger(name: str) -> Callable[..., Array]:
    """Make the kernel over tables [R, D, E], with `vmap` folded into R.

    Its other operands, of all merges but the mean, are base [R, E], visits [R or 1, D, E] and alpha
    [R or 1], uint32 in units of 1/32,768.
    """

    @custom_vmap
    def run(tables: Array, *others: Array) -> Array:
        replicas, _, entries = tables.shape
        kernel = jax.ffi.ffi_call(
            native.target(_TARGETS[tables.dtype.name]),
            jax.ShapeDtypeStruct((replicas, entries), tables.dtype),
        )
        return kernel(tables, *others, merge=merge.MERGES.index(name))

    @run.def_vmap
    def batch(axis_size: int, batched: list[bool], *operands: Array) -> tuple[Array, bool]:
        replicas = operands[0].shape[-3]

        def fold(k: int, x: Array, is_batched: bool) -> Array:
            if not is_batched:
                # Visits and alpha that all replicas share are not copied.
                if k >= 2 and len(x) == 1:
                    return x
                x = jnp.broadcast_to(x, (axis_size, *x.shape))
            x = jnp.broadcast_to(x, (axis_size, replicas, *x.shape[2:]))
            return x.reshape(axis_size * replicas, *x.shape[2:])

        merged = run(*map(fold, range(len(operands)), operands, batched))
        return merged.reshape(axis_size, replicas, merged.shape[1]), True

    return run
