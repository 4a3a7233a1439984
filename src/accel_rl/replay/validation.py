"""Checks of inputs: at once for known values, through checkify for traced ones."""

import jax
import numpy as np
from jax.experimental import checkify

from accel_rl.arguments import real, within
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


def require_share(name: str, value: ArrayLike) -> None:
    """Check that a scalar, if known, is from 0 to 1.

    Raises:
      ValueError: if it is no scalar, or known and out of range.
    """
    if known(value):
        within(name, value, "[0, 1]")
    else:
        real(name, value)


def require_small(name: str, value: ArrayLike) -> None:
    """Check that a scalar, if known, is finite and not negative.

    Raises:
      ValueError: if it is no scalar, or known and out of range.
    """
    if known(value):
        within(name, value, "[0, inf)")
    else:
        real(name, value)


def sound_priorities(priorities: PyTree, checked: bool = False) -> PyTree:
    """Return a mask of the finite, non-negative priorities, bool as `priorities`.

    Traced priorities that are invalid are reported through checkify if `checked`.

    Raises:
      ValueError: if a priority is known and is NaN, negative or infinite.
    """
    sound = (priorities >= 0) & (priorities < np.float32(np.inf))
    require(sound.all(), "priorities must be finite and not negative", checked)
    return sound


def same_structure(argument: str, expected: PyTree, found: PyTree) -> None:
    """Check that two pytrees have the same structure.

    Raises:
      TypeError: if they do not.
    """
    wanted, got = str(jax.tree.structure(expected)), str(jax.tree.structure(found))
    if wanted != got:
        raise TypeError(f"{argument} must have the structure of the example, {wanted}, got {got}")
