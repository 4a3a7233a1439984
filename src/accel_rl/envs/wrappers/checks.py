"""What wrappers say of bad input."""

import operator
from typing import Any

import numpy as np

from accel_rl.types import Box, Environment

LARGEST_COUNT = 2**31 - 1


def require_environment(env: Any) -> Environment:
    """Raises TypeError unless it is a `types.Environment`."""
    if not isinstance(env, Environment):
        raise TypeError(
            f"env must be a types.Environment (envs.environment makes one), got {env!r}"
        )
    return env


def require_box(env: Environment, wrapper: str) -> Box:
    """The space of observations; raises TypeError unless it is a Box."""
    space = require_environment(env).observation_space
    if not isinstance(space, Box):
        raise TypeError(f"{wrapper} needs Box observations, {env.name} has {space}: use one_hot")
    return space


def require_count(name: str, value: Any) -> int:
    """Raises TypeError unless it is an integer, ValueError unless it is 1 or more, in 31 bits."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if not 1 <= count <= LARGEST_COUNT:
        raise ValueError(f"{name} must be from 1 to {LARGEST_COUNT}, got {count}")
    return count
