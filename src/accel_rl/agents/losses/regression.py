"""What a temporal-difference error costs."""

import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array


def squared(error: Array) -> Array:
    """Half the square of the error, whose derivative is the error; as `error`."""
    return np.float32(0.5) * jnp.square(error)


def huber(error: Array, delta: float = 1.0) -> Array:
    """Half the square up to |error| = delta, linear beyond; as `error`.

    Reference: Huber, "Robust estimation of a location parameter", Annals of Statistics 1964.
    """
    size = jnp.abs(error)
    inside = jnp.minimum(size, np.float32(delta))
    return np.float32(0.5) * jnp.square(inside) + np.float32(delta) * (size - inside)


LOSSES = {"squared": squared, "huber": huber}
