"""Wrappers that change rewards."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from accel_rl.types import Array, ArrayLike, Environment, EnvStep, PyTree


def map_rewards(env: Environment, function: Callable[[Array], Array]) -> Environment:
    """Apply a function, from scalar to scalar, to the rewards of `env`."""

    def step(key: Array, state: PyTree, action: ArrayLike) -> EnvStep:
        observation, state, reward, terminated, truncated, info = env.step(key, state, action)
        reward = jnp.asarray(function(reward), jnp.float32)
        return observation, state, reward, terminated, truncated, info

    return env._replace(step=step)


def scale_rewards(env: Environment, factor: ArrayLike) -> Environment:
    """Multiply the rewards of `env` by a finite factor other than 0, which may be traced."""
    if not isinstance(factor, jax.core.Tracer) and not (math.isfinite(factor) and factor != 0):
        raise ValueError(f"factor must be finite and not zero, got {factor}")
    scale = jnp.asarray(factor, jnp.float32)
    return map_rewards(env, lambda reward: reward * scale)


def clip_rewards(env: Environment, low: float = -1.0, high: float = 1.0) -> Environment:
    """Clip the rewards of `env` to [low, high].

    After V. Mnih et al. (Nature 518, 2015).
    """
    if not low < high:
        raise ValueError(f"low must be below high, got {low} and {high}")
    return map_rewards(env, lambda reward: jnp.clip(reward, low, high))
