"""Hyper-parameters by name: defaults, limits and validation."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import meant, real
from accel_rl.types import Array, ArrayLike


class Limits(NamedTuple):
    """Default, closed range and description of a hyper-parameter."""

    default: float
    low: float
    high: float
    meaning: str


def resolve(
    limits: Mapping[str, Limits], given: Mapping[str, ArrayLike], others: str = ""
) -> dict[str, Array]:
    """Return every hyper-parameter as a float32 scalar: the given value, else the default.

    Args:
      limits: known hyper-parameters.
      given: values by name.
      others: hint, appended to the message about an unknown name, where other names belong.

    Raises:
      TypeError: if a name is unknown (the message lists the known ones), or a value is not a
        number.
    """
    for name in given:
        if name not in limits:
            raise TypeError(f"no hyper-parameter {name!r}; {meant(name, limits)}{others}")
    return {name: _checked(name, each, given.get(name)) for name, each in limits.items()}


def _checked(name: str, limits: Limits, value: Any) -> Array:
    value = limits.default if value is None else value
    if np.shape(value) != ():
        raise ValueError(f"{name} must be a scalar (vmap over several), got {np.shape(value)}")
    if not isinstance(value, jax.core.Tracer):
        number = float(real(name, value))
        if not limits.low <= number <= limits.high:
            raise ValueError(f"{name} must be from {limits.low} to {limits.high}, got {number}")
    return jnp.asarray(value, jnp.float32)
