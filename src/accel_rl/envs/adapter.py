"""gymnax environments, and ours, as `types.Environment`: pure functions and plain spaces."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.envs import registry
from accel_rl.types import Array, Box, Discrete, Environment, Space


def environment(name: str, **kwargs: Any) -> Environment:
    """The environment called `name`, for training: see `make` for names and arguments.

    Raises:
      ValueError: if there is none, or a space is neither Discrete nor Box.
    """
    env, params = registry.make(name, **kwargs)
    return from_gymnax(env, params, name)


def from_gymnax(env: Any, params: Any = None, name: str | None = None) -> Environment:
    """A gymnax environment (1.0: the six-value step) with its parameters bound.

    Args:
      env: a `gymnax.environments.environment.Environment`.
      params: its parameters, which may be traced; its defaults if None.
      name: what to call it; the environment's own name if None.

    Raises:
      ValueError: if a space is neither Discrete nor Box.
    """
    params = env.default_params if params is None else params
    title = env.name if name is None else name

    def reset(key: Array) -> tuple[Any, Any]:
        with jax.numpy_dtype_promotion("standard"):  # gymnax mixes dtypes
            observation, state = env.reset(key, params)
        return observation, state

    def step(key: Array, state: Any, action: Array) -> Any:
        with jax.numpy_dtype_promotion("standard"):
            observation, state, reward, terminated, truncated, info = env.step(
                key, state, action, params
            )
        return (
            observation,
            state,
            jnp.asarray(reward, jnp.float32),
            jnp.asarray(terminated, bool),
            jnp.asarray(truncated, bool),
            info,
        )

    return Environment(
        name=title,
        observation_space=space_of(env.observation_space(params), f"{title}'s observation space"),
        action_space=space_of(env.action_space(params), f"{title}'s action space"),
        reset=reset,
        step=step,
    )


def space_of(space: Any, what: str = "space") -> Space:
    """A space of gymnax's or Gymnasium's as a plain description.

    Raises:
      ValueError: if it is neither Discrete (from 0) nor Box.
    """
    if isinstance(space, (Discrete, Box)):
        return space
    kind = type(space).__name__
    if kind == "Discrete" and getattr(space, "start", 0) == 0:
        return Discrete(int(space.n))
    if kind == "Box":
        shape = tuple(int(size) for size in space.shape)
        low, high = (
            tuple(np.broadcast_to(np.asarray(bound, np.float64), shape).ravel().tolist())
            for bound in (space.low, space.high)
        )
        return Box(low, high, shape, np.dtype(space.dtype))
    raise ValueError(f"{what} must be Discrete (from 0) or Box, got {space}")
