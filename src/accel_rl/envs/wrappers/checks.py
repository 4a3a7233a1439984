"""What wrappers say of bad input."""

from typing import Any

from accel_rl.arguments import instance, whole
from accel_rl.types import Box, Environment

LARGEST_COUNT = 2**31 - 1


def require_environment(env: Any) -> Environment:
    """Raises TypeError unless it is a `types.Environment`."""
    instance("env", env, Environment, "envs.environment makes one")
    return env


def require_box(env: Environment, wrapper: str) -> Box:
    """The space of observations; raises TypeError unless it is a Box."""
    space = require_environment(env).observation_space
    if not isinstance(space, Box):
        raise TypeError(f"{wrapper} needs Box observations, {env.name} has {space}: use one_hot")
    return space


def require_count(name: str, value: Any) -> int:
    """Raises TypeError unless it is an integer, ValueError unless it is 1 or more, in 31 bits."""
    return whole(name, value, 1, LARGEST_COUNT)
