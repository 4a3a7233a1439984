"""Merges in C for CPUs, through XLA's FFI: signatures and derivatives are those of the JAX forms.

INT32 is bit-identical to `merge` and `runs`. FP32 rounds as the semantics state: the kernels
contract no product and sum to one FMA, and keep subnormals, both of which XLA may not.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from accel_rl import native
from accel_rl.arguments import one_of, require_array
from accel_rl.pim import merge, runs
from accel_rl.tabular.passes.native import fold_replicas
from accel_rl.types import Array, PyTree

_DTYPES = {"float32": "fp32", "int32": "int32"}


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 5))
def merge_tables(
    name: str, tables: Array, base: Array, visits: Array, alpha: Array, bound: int
) -> Array:
    """Merge the DPUs' tables into one; see `merge.merge_tables`."""
    _check(name, "tables", tables, base, visits, alpha, bound)
    require_array("base", base, tables.dtype, tables.shape[1:])
    if name == "mean":  # reads nothing else, so that XLA need not count visits
        return _merger(name)(tables[None])[0]
    return _merger(name)(tables[None], base[None], visits[None], merge.damped_unit(alpha)[None])[0]


@merge_tables.defjvp
def _differentiate(name: str, bound: int, primals: PyTree, tangents: PyTree) -> PyTree:
    return jax.jvp(functools.partial(merge.merge_tables, name, bound=bound), primals, tangents)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 6))
def merge_runs(
    name: str,
    values: Array,
    order: runs.RunOrder,
    base: Array,
    visits: Array,
    alpha: Array,
    bound: int,
) -> Array:
    """Merge the values of runs into one table; see `runs.merge_runs`."""
    _check(name, "values", values, base, visits, alpha, bound)
    require_array("base", base, values.dtype, order.begin.shape)
    counts = jnp.zeros(0, jnp.uint32) if name == "mean" else visits.reshape(-1)
    shared = [order.place, order.begin, order.end, counts]
    own = [x[None] for x in (values.reshape(-1), base, merge.damped_unit(alpha))]
    return _run_merger(name)(shared, own)[0]


@merge_runs.defjvp
def _differentiate_runs(name: str, bound: int, primals: PyTree, tangents: PyTree) -> PyTree:
    return jax.jvp(functools.partial(runs.merge_runs, name, bound=bound), primals, tangents)


def _check(
    name: str, what: str, values: Array, base: Array, visits: Array, alpha: Array, bound: int
) -> None:
    """Check what tables and values of runs share."""
    one_of("merge", name, merge.MERGES)
    one_of(f"dtype of {what}", values.dtype.name, _DTYPES)
    if values.ndim != 2:
        raise ValueError(f"{what} must have two axes, got shape {values.shape}")
    if values.dtype == np.int32:
        merge.check_bound(name, bound)
    require_array("visits", visits, np.uint32, values.shape)
    require_array("alpha", alpha, np.float32, ())


def _call(form: str, name: str, values: Array, entries: int, operands: list[Array]) -> Array:
    """Call the kernel of a form, whose result is [R, E] for values [R, ...]."""
    kernel = jax.ffi.ffi_call(
        native.target(f"accel_rl_{form}_{_DTYPES[values.dtype.name]}"),
        jax.ShapeDtypeStruct((values.shape[0], entries), values.dtype),
    )
    return kernel(*operands, merge=merge.MERGES.index(name))


@functools.cache
def _merger(name: str) -> Callable[..., Array]:
    """Make the kernel over tables [R, D, E], with `vmap` folded into R.

    Its other operands, of all merges but the mean, are base [R, E], visits [R or 1, D, E] and alpha
    [R or 1], uint32 in units of 1/32,768.
    """

    @custom_vmap
    def run(tables: Array, *others: Array) -> Array:
        return _call("merge", name, tables, tables.shape[2], [tables, *others])

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


@functools.cache
def _run_merger(name: str) -> Callable[[PyTree, PyTree], Array]:
    """Make the kernel over values [R, G], base [R, E] and alpha [R], with `vmap` folded into R.

    The replicas share places [G], begins and ends [E], and visits [G]: none for the mean.
    """

    def call(shared: list[Array], own: list[Array]) -> Array:
        values, base, _ = own
        return _call("merge_runs", name, values, base.shape[1], [*shared, *own])

    return fold_replicas(call)
