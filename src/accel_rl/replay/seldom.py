"""Work that is seldom needed, and skipped where it is not: under vmap too."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from accel_rl.types import Array


def seldom(due: Array, fn: Callable[..., Any], default: Any, *operands: Any) -> Any:
    """`fn(default, *operands)` where `due`, else `default`.

    A `lax.cond`, but under vmap it stays one: fn runs if it is due for any of the elements, and
    not, as a `cond` would, always.

    Args:
      due: bool.
      fn: makes a pytree like `default`.
      default: a pytree of arrays.
      *operands: all other arrays that fn reads; it must not close over traced ones.
    """

    @jax.custom_batching.custom_vmap
    def choose(due: Array, default: Any, operands: tuple[Any, ...]) -> Any:
        # Identity is the false branch: as the true one, XLA would copy what passes through it.
        return jax.lax.cond(
            due, lambda: fn(default, *operands), lambda: jax.tree.map(jnp.asarray, default)
        )

    @choose.def_vmap
    def rule(
        axis_size: int, batched: Any, due: Array, default: Any, operands: tuple[Any, ...]
    ) -> tuple[Any, Any]:
        axes = jax.tree.map(lambda each: 0 if each else None, batched)
        due = jnp.broadcast_to(due, (axis_size,)) if not batched[0] else due
        default = jax.tree.map(
            lambda leaf, each: leaf if each else jnp.broadcast_to(leaf, (axis_size, *leaf.shape)),
            default,
            batched[1],
        )

        def each(default: Any, due: Array, *operands: Any) -> Any:
            def one(due: Array, default: Any, operands: tuple[Any, ...]) -> Any:
                new = fn(default, *operands)
                return jax.tree.map(lambda a, b: jnp.where(due, a, b), new, default)

            return jax.vmap(one, in_axes=(0, 0, axes[2]))(due, default, operands)

        result = seldom(jnp.any(due), each, default, due, *operands)
        return result, jax.tree.map(lambda _: True, result)

    return choose(due, default, operands)
