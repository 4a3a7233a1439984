"""Conditional execution of rare work that remains conditional under vmap."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from accel_rl.types import Array, PyTree


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
