"""Actions of a bounded Box, and the cube from -1 to 1 in which agents choose them."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array, Box


def components(space: Box) -> int:
    """D, how many numbers an action is."""
    return math.prod(space.shape)


def from_cube(space: Box, action: Array) -> Array:
    """Actions of the space, -1 its lower bounds and 1 its upper ones.

    Args:
      space: with bounds.
      action: [B, D] float32 in [-1, 1].

    Returns:
      [B, *space.shape] of the space's dtype, never outside the bounds.
    """
    middle, half = _middle_and_half(space)
    low, high = (np.asarray(bound, np.float32) for bound in (space.low, space.high))
    action = jnp.clip(middle + half * action, low, high)
    dtype = jax.dtypes.canonicalize_dtype(space.dtype)
    return action.reshape(-1, *space.shape).astype(dtype)


def to_cube(space: Box, action: Array) -> Array:
    """The inverse of `from_cube`; 0 where both bounds are the same.

    Args:
      space: with bounds.
      action: [B, *space.shape].

    Returns:
      [B, D] float32.
    """
    middle, half = _middle_and_half(space)
    flat = action.reshape(-1, components(space)).astype(jnp.float32)
    return (flat - middle) / np.where(half > 0, half, np.float32(1))


def _middle_and_half(space: Box) -> tuple[np.ndarray, np.ndarray]:
    """The middle of the range of each component, and half its width; [D] float32."""
    low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    return (low / 2 + high / 2).astype(np.float32), (high / 2 - low / 2).astype(np.float32)
