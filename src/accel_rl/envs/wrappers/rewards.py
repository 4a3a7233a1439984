"""Wrappers that change rewards."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from accel_rl.arguments import function as function_of
from accel_rl.arguments import real
from accel_rl.envs.wrappers.spaces import require_environment
from accel_rl.types import Array, ArrayLike, Environment, EnvStep, PyTree


def map_rewards(env: Environment, function: Callable[[Array], Array]) -> Environment:
    """Apply a function, from scalar to scalar, to rewards.

    Raises:
      TypeError: if env is not an environment, or the function is not one or does not return a float
        scalar.
    """
    require_environment(env)
    function_of("function", function)
    made = jax.eval_shape(function, jax.ShapeDtypeStruct((), jnp.float32))
    if not (
        isinstance(made, jax.ShapeDtypeStruct)
        and made.shape == ()
        and jnp.issubdtype(made.dtype, jnp.floating)
    ):
        raise TypeError(f"function must give a float scalar, got {made}")

    def step(key: Array, state: PyTree, action: ArrayLike) -> EnvStep:
        observation, state, reward, terminated, truncated, info = env.step(key, state, action)
        reward = jnp.asarray(function(reward), jnp.float32)
        return observation, state, reward, terminated, truncated, info

    return env._replace(step=step)


def scale_rewards(env: Environment, factor: ArrayLike) -> Environment:
    """Multiply rewards by a factor, which may be traced.

    Raises:
      TypeError: if env is not an environment, or the factor is not a number.
      ValueError: if the factor is concrete (not traced) and not finite, or zero.
    """
    real("factor", factor)
    if not isinstance(factor, jax.core.Tracer) and not (math.isfinite(factor) and factor != 0):
        raise ValueError(f"factor must be finite and not zero, got {factor}")
    scale = jnp.asarray(factor, jnp.float32)
    return map_rewards(env, lambda reward: reward * scale)


def clip_rewards(env: Environment, low: float = -1.0, high: float = 1.0) -> Environment:
    """Clip rewards to [low, high], as V. Mnih et al. (Nature 518, 2015) do for Atari games.

    Raises:
      TypeError: if env is not an environment, or a bound is not a number.
      ValueError: if low is not below high.
    """
    if not real("low", low) < real("high", high):
        raise ValueError(f"low must be below high, got {low} and {high}")
    return map_rewards(env, lambda reward: jnp.clip(reward, low, high))
