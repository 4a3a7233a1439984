"""Work that is done in some steps only."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp

from accel_rl.types import Array

T = TypeVar("T")


def occasionally(due: Array, work: Callable[[T], T], state: T) -> T:
    """`work(state)` if due, else the state.

    As `lax.cond`, but under `vmap` too the work is only done where a member of the batch is due;
    a `cond` on a batch does it always. No gradients in reverse.

    Args:
      due: [] bool.
      work: keeps structure, shapes and dtypes.
      state: a pytree of arrays.
    """

    def once(carry: tuple[Array, T]) -> tuple[Array, T]:
        return jnp.zeros_like(carry[0]), work(carry[1])

    return jax.lax.while_loop(lambda carry: carry[0], once, (due, state))[1]
