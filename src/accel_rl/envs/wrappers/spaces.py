"""Checks of wrappers' arguments."""

from typing import Any

from accel_rl.arguments import instance, whole
from accel_rl.types import Box, Environment

LARGEST_COUNT = 2**31 - 1


def require_environment(env: Any) -> Environment:
    """Raise TypeError unless `env` is a `types.Environment`."""
    instance("env", env, Environment, "envs.environment makes one")
    return env


def require_box(env: Environment, wrapper: str) -> Box:
    """Return the observation space; raise TypeError unless it is a Box."""
    space = require_environment(env).observation_space
    if not isinstance(space, Box):
        raise TypeError(f"{wrapper} needs Box observations, {env.name} has {space}: use one_hot")
    return space


def require_count(name: str, value: object) -> int:
    """Raise TypeError unless the value is an integer, ValueError unless it is 1 to 2^31 - 1."""
    return whole(name, value, 1, LARGEST_COUNT)
