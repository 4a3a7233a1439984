"""Hyper-parameters by name: defaults, limits and validation."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from accel_rl.arguments import meant, real, within
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
      given: scalars by name; `vmap` over several.
      others: hint, appended to the message about an unknown name, where other names belong.
    """
    for name in given:
        if name not in limits:
            raise TypeError(f"no hyper-parameter {name!r}; {meant(name, limits)}{others}")

    def checked(name: str, limits: Limits) -> Array:
        value = given.get(name, limits.default)
        if isinstance(value, jax.core.Tracer):
            real(name, value)
        else:
            within(name, value, f"[{limits.low}, {limits.high}]")
        return jnp.asarray(value, jnp.float32)

    return {name: checked(name, each) for name, each in limits.items()}
