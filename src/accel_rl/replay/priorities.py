"""Priorities from TD errors."""

import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import scalar_within
from accel_rl.types import Array, ArrayLike


def td_priority(td_error: Array, epsilon: ArrayLike = 1e-6) -> Array:
    """Return |TD error| + epsilon, float32 of the shape of `td_error`.

    `epsilon`, at least 0, keeps items without error sampleable.

    Reference: Schaul et al., "Prioritized experience replay", ICLR 2016, section 3.3.
    """
    return jnp.abs(td_error) + scalar_within("epsilon", epsilon, "[0, inf)")


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

    Reference: Kapturowski et al., "Recurrent experience replay in distributed reinforcement
      learning", ICLR 2019, section 2.3.
    """
    import chex  # at the first trace, since it takes 0.1 s

    eta = scalar_within("eta", eta, "[0, 1]")
    epsilon = scalar_within("epsilon", epsilon, "[0, inf)")
    chex.assert_type(valid, bool)
    chex.assert_equal_shape([valid, td_error])
    error = jnp.where(valid, jnp.abs(td_error), np.float32(0))
    steps = jnp.maximum(jnp.sum(valid, axis=-1), 1).astype(jnp.float32)
    mixed = eta * error.max(axis=-1) + (1 - eta) * error.sum(axis=-1) / steps
    return mixed + epsilon
