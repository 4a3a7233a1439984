"""Affine maps between the actions of a bounded Box and [-1, 1]^D, in which agents act."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array, Box


def components(space: Box) -> int:
    """Return D, the number of components of an action."""
    return math.prod(space.shape)


def from_cube(space: Box, action: Array) -> Array:
    """Map actions in [-1, 1] to the bounds of a space.

    Args:
      space: with finite bounds; -1 maps to `low`, 1 to `high`.
      action: [B, D] float32 in [-1, 1].

    Returns:
      [B, *space.shape] of the space's dtype, never outside the bounds.
    """
    middle, half = _middle_and_half(space)
    # Rounding of middle + half can exceed a bound, so the result is clipped in the space's units.
    low, high = (np.asarray(bound, np.float32) for bound in (space.low, space.high))
    action = jnp.clip(middle + half * action, low, high)
    dtype = jax.dtypes.canonicalize_dtype(space.dtype)
    return action.reshape(-1, *space.shape).astype(dtype)


def to_cube(space: Box, action: Array) -> Array:
    """Map actions of a space to [-1, 1], the inverse of `from_cube`.

    Args:
      space: with finite bounds. A component whose bounds are equal maps to 0.
      action: [B, *space.shape].

    Returns:
      [B, D] float32.
    """
    middle, half = _middle_and_half(space)
    flat = action.reshape(-1, components(space)).astype(jnp.float32)
    return (flat - middle) / np.where(half > 0, half, np.float32(1))


def _middle_and_half(space: Box) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle and half the width of each component's range, [D] float32 each."""
    # Halved before they are added: the sum of two large bounds could overflow.
    low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    return (low / 2 + high / 2).astype(np.float32), (high / 2 - low / 2).astype(np.float32)
