"""Control flow that XLA keeps: rare work under vmap too, reads before writes, calls."""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata

from accel_rl.types import Array, ArrayLike, PyTree


def order_after(value: Array, computed: ArrayLike) -> Array:
    """Return `value`, unchanged, which XLA can use only once `computed` is known.

    XLA copies an array that is written while it may still be read. Order the write after the
    results of the read, by its index or mask, and it is in place.

    Args:
      value: array, such as the index of a write.
      computed: numbers of any shape, such as TD errors of a batch read before.
    """
    # Never true, not even for NaN or infinity, but XLA cannot know that. With an
    # optimization_barrier over both in its place XLA still copies.
    impossible = jnp.any(jnp.asarray(computed, jnp.float32) * 0 == 1)
    return jnp.where(impossible, jnp.zeros_like(value), value)


def write_nothing(array: Array, computed: ArrayLike) -> Array:
    """Return `array` through a write that changes nothing, and waits for `computed`.

    In a branch of a `lax.cond`, XLA copies an array that is read, written and read again, unless a
    write follows the last of these reads.

    Args:
      array: [n, ...], large.
      computed: numbers of any shape, computed from what was read since the last write.
    """
    beyond = order_after(jnp.int32(array.shape[0]), computed)
    return array.at[beyond].set(0, mode="drop")


def compiled_apart(fn: Callable[..., PyTree], static: Sequence[str] = ()) -> Callable[..., PyTree]:
    """Return `fn`, compiled as if it were alone wherever it is called.

    XLA does not fuse it with what comes before or after. On CPUs, what is fused with several uses
    is computed once for each of them, even behind an optimization_barrier.

    Args:
      fn: may take pytrees of arrays.
      static: names of arguments that are static.
    """

    @functools.wraps(fn)
    def whole(*args: PyTree, **kwargs: object) -> PyTree:
        with set_xla_metadata(inlineable="true"):  # what it calls is fused with it
            return fn(*args, **kwargs)

    compiled = jax.jit(whole, static_argnames=tuple(static))

    @functools.wraps(fn)
    def call(*args: PyTree, **kwargs: object) -> PyTree:
        # XLA fuses within a called function, and inlines calls first unless it is told not to.
        with set_xla_metadata(inlineable="false"):
            return compiled(*args, **kwargs)

    return call


def cond_under_vmap(
    due: Array, fn: Callable[..., PyTree], default: PyTree, *operands: PyTree
) -> PyTree:
    """Return `fn(default, *operands)` if `due`, else `default`.

    A `lax.cond` that remains one under vmap: fn runs only if it is due for any of the elements,
    whereas a vmapped `cond` always runs it.

    Args:
      due: bool.
      fn: returns a pytree like `default`.
      default: a pytree of arrays.
      *operands: all other arrays that fn reads; fn must not close over traced arrays.
    """

    @jax.custom_batching.custom_vmap
    def choose(due: Array, default: PyTree, operands: tuple[PyTree, ...]) -> PyTree:
        # Identity must be the false branch: XLA would copy arrays that pass through a true branch.
        return jax.lax.cond(
            due, lambda: fn(default, *operands), lambda: jax.tree.map(jnp.asarray, default)
        )

    @choose.def_vmap
    def rule(
        axis_size: int, batched: PyTree, due: Array, default: PyTree, operands: tuple[PyTree, ...]
    ) -> tuple[PyTree, PyTree]:
        axes = jax.tree.map(lambda each: 0 if each else None, batched)
        due = jnp.broadcast_to(due, (axis_size,)) if not batched[0] else due
        default = jax.tree.map(
            lambda leaf, each: leaf if each else jnp.broadcast_to(leaf, (axis_size, *leaf.shape)),
            default,
            batched[1],
        )

        def each(default: PyTree, due: Array, *operands: PyTree) -> PyTree:
            def one(due: Array, default: PyTree, operands: tuple[PyTree, ...]) -> PyTree:
                new = fn(default, *operands)
                return jax.tree.map(lambda a, b: jnp.where(due, a, b), new, default)

            return jax.vmap(one, in_axes=(0, 0, axes[2]))(due, default, operands)

        result = cond_under_vmap(jnp.any(due), each, default, due, *operands)
        return result, jax.tree.map(lambda _: True, result)

    return choose(due, default, operands)
