"""Conditional work that `vmap` does not turn into unconditional work."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp

from accel_rl.types import Array

T = TypeVar("T")


def occasionally(due: Array, work: Callable[[T], T], state: T) -> T:
    """Return `work(state)` if due, else the state.

    Under `vmap`, `lax.cond` becomes a select and always does the work. This function skips the work
    unless at least one member of the batch is due. It has no reverse-mode derivative.

    Args:
      due: [] bool.
      work: keeps structure, shapes and dtypes.
      state: a pytree of arrays.
    """

    def once(carry: tuple[Array, T]) -> tuple[Array, T]:
        return jnp.zeros_like(carry[0]), work(carry[1])

    return jax.lax.while_loop(lambda carry: carry[0], once, (due, state))[1]
