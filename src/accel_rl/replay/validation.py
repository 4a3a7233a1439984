"""Checks of inputs: at once for known values, through checkify for traced ones."""

import jax
import numpy as np
from jax.experimental import checkify

from accel_rl.types import ArrayLike, PyTree


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


def sound_priorities(priorities: PyTree, checked: bool = False) -> PyTree:
    """Return a mask of the finite, non-negative priorities, bool as `priorities`.

    Traced priorities that are invalid are reported through checkify if `checked`.
    """
    sound = (priorities >= 0) & (priorities < np.float32(np.inf))
    require(sound.all(), "priorities must be finite and not negative", checked)
    return sound
