"""Priorities from TD errors."""

import jax.numpy as jnp
import numpy as np

from accel_rl.replay.validation import require_share, require_small
from accel_rl.types import Array, ArrayLike


def td_priority(td_error: Array, epsilon: ArrayLike = 1e-6) -> Array:
    """Return |TD error| + epsilon, float32 of the shape of `td_error`.

    `epsilon` keeps items without error sampleable.

    Raises:
      TypeError: if an argument is not numeric.
      ValueError: if `epsilon` is known and negative or not finite.

    Reference: Schaul et al., "Prioritized experience replay", ICLR 2016, section 3.3.
    """
    require_small("epsilon", epsilon)
    return jnp.abs(td_error) + jnp.asarray(epsilon, jnp.float32)


def sequence_priority(
    td_error: Array, valid: Array, eta: ArrayLike = 0.9, epsilon: ArrayLike = 1e-6
) -> Array:
    """Return eta * max + (1 - eta) * mean of the absolute TD errors of a sequence's valid steps.

    Args:
      td_error: [..., L] float32.
      valid: [..., L] bool, as in `types.Sequences`.
      eta: weight of the maximum, 0 to 1.
      epsilon: added, so that sequences without error can still be drawn.

    Returns:
      float32 [...].

    Raises:
      TypeError: if `eta` or `epsilon` is no number, or `valid` is not of bool.
      ValueError: if shapes differ or have no step, or a number is known and out of range.

    Reference: Kapturowski et al., "Recurrent experience replay in distributed reinforcement
      learning", ICLR 2019, section 2.3.
    """
    require_share("eta", eta)
    require_small("epsilon", epsilon)
    if getattr(valid, "dtype", None) != np.bool_:
        raise TypeError(f"valid must be an array of bool, got {getattr(valid, 'dtype', valid)}")
    if np.shape(valid) != np.shape(td_error) or 0 in np.shape(valid)[-1:] or np.ndim(valid) == 0:
        raise ValueError(
            f"valid must have the shape of td_error, [..., L] with L >= 1, {np.shape(td_error)}, "
            f"got {np.shape(valid)}"
        )
    error = jnp.where(valid, jnp.abs(td_error), np.float32(0))
    steps = jnp.maximum(jnp.sum(valid, axis=-1), 1).astype(jnp.float32)
    eta = jnp.asarray(eta, jnp.float32)
    mixed = eta * error.max(axis=-1) + (1 - eta) * error.sum(axis=-1) / steps
    return mixed + jnp.asarray(epsilon, jnp.float32)
