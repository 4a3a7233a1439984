"""Checks of inputs: at once for known values, through checkify for traced ones."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

from accel_rl.arguments import real, within
from accel_rl.types import Array, ArrayLike, PyTree


def known(*values: PyTree) -> bool:
    """Return True if no value is traced, so that Python can read it."""
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def require(condition: ArrayLike, message: str, checked: bool = False) -> None:
    """Raise ValueError if `condition` is known and false; add a checkify check if it is traced.

    The checkify check is added only if `checked`: a function that contains one loses JAX's fast
    path for calls, with or without checkify.
    """
    if isinstance(condition, jax.core.Tracer):
        if checked:
            checkify.debug_check(condition, message)
    elif not np.all(np.asarray(condition)):
        raise ValueError(message)


def scalar_within(name: str, value: ArrayLike, interval: str) -> Array:
    """Check a real scalar, in an interval such as "[0, 1)" if it is known; return it as float32."""
    if known(value):
        within(name, value, interval)
    else:
        real(name, value)
    return jnp.asarray(value, jnp.float32)


def sound_priorities(priorities: PyTree, checked: bool = False) -> PyTree:
    """Return a mask of the finite, non-negative priorities, bool as `priorities`.

    Traced priorities that are invalid are reported through checkify if `checked`.
    """
    sound = (priorities >= 0) & (priorities < np.float32(np.inf))
    require(sound.all(), "priorities must be finite and not negative", checked)
    return sound
