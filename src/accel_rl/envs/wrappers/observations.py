"""Wrappers that change observations."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike

from accel_rl.arguments import whole
from accel_rl.types import Array, ArrayLike, Box, Discrete, Environment, EnvStep, PyTree, Space


def require_box(env: Environment, wrapper: str) -> Box:
    """Return the observation space; raise TypeError unless it is a Box."""
    space = env.observation_space
    if not isinstance(space, Box):
        raise TypeError(f"{wrapper} needs Box observations, {env.name} has {space}: use one_hot")
    return space


def map_observations(
    env: Environment, function: Callable[[Array], Array], space: Space
) -> Environment:
    """Apply a function to observations, including final observations.

    Args:
      env: an environment.
      function: from an observation of `env` to one of `space`; pure.
      space: of the new observations.
    """
    old = env.observation_space
    held = jax.dtypes.canonicalize_dtype
    made = jax.eval_shape(function, jax.ShapeDtypeStruct(old.shape, held(old.dtype)))
    if (made.shape, made.dtype) != (space.shape, held(space.dtype)):
        raise ValueError(f"function must give elements of {space}, got {made.dtype}{made.shape}")

    def reset(key: Array) -> tuple[Array, PyTree]:
        observation, state = env.reset(key)
        return function(observation), state

    def step(key: Array, state: PyTree, action: ArrayLike) -> EnvStep:
        observation, state, reward, terminated, truncated, info = env.step(key, state, action)
        info = {**info, "final_observation": function(info["final_observation"])}
        return function(observation), state, reward, terminated, truncated, info

    return env._replace(observation_space=space, reset=reset, step=step)


def flatten_observations(env: Environment) -> Environment:
    """Flatten the Box observations of `env` to vectors, in C order."""
    space = require_box(env, "flatten_observations")
    return map_observations(env, jnp.ravel, dataclasses.replace(space, shape=(len(space.low),)))


def one_hot(env: Environment) -> Environment:
    """Encode the Discrete observations of `env` as one-hot float32 vectors."""
    space = env.observation_space
    if not isinstance(space, Discrete):
        raise TypeError(f"one_hot needs Discrete observations, {env.name} has {space}")
    n = space.n
    return map_observations(
        env,
        lambda observation: jax.nn.one_hot(observation, n, dtype=jnp.float32),
        Box((0.0,) * n, (1.0,) * n, (n,)),
    )


def cast_observations(env: Environment, dtype: DTypeLike) -> Environment:
    """Cast Box observations of `env` to another `dtype`, such as MinAtar's 0 and 1 to uint8.

    The dtype must hold the bounds of the space. Only these are checked: a cast to integers drops
    the fractions of values between them.
    """
    space = require_box(env, "cast_observations")
    target = jax.dtypes.canonicalize_dtype(np.dtype(dtype))
    bounds = space.low + space.high
    if target.kind in "iu":
        limits = np.iinfo(target)
        held = all(limits.min <= bound <= limits.max for bound in bounds)
    elif target.kind == "b":
        held = set(bounds) <= {0.0, 1.0}
    elif jnp.issubdtype(target, jnp.floating):
        with np.errstate(over="ignore"):
            cast = np.asarray(bounds).astype(target)
        # A bound may be rounded, but not become infinite.
        held = np.array_equal(np.isfinite(cast), np.isfinite(bounds))
    else:
        held = False
    if not held:
        raise ValueError(f"dtype must hold the bounds of {env.name}'s observations, got {target}")
    return map_observations(
        env,
        lambda observation: observation.astype(target),
        dataclasses.replace(space, dtype=target),
    )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class FrameStackState:
    """State of an environment and its latest observations; a pytree."""

    env: PyTree  # state of the wrapped environment
    stack: Array  # [*observation[:-1], frames * observation[-1]], the newest last


def frame_stack(env: Environment, frames: int) -> Environment:
    """Stack the latest observations of the episode along the last axis.

    The newest comes last; an episode begins with copies of its first observation.

    Args:
      env: an environment with Box observations of at least one axis.
      frames: number of observations.
    """
    space = require_box(env, "frame_stack")
    whole("frames", frames, 1)
    width = space.shape[-1]

    def stacked(bounds: tuple[float, ...]) -> tuple[float, ...]:
        tiled = np.concatenate([np.reshape(bounds, space.shape)] * frames, axis=-1)
        return tuple(tiled.ravel().tolist())

    stacks = Box(
        stacked(space.low),
        stacked(space.high),
        (*space.shape[:-1], frames * width),
        space.dtype,
    )

    def first(observation: Array) -> Array:
        return jnp.concatenate([observation] * frames, axis=-1)

    def reset(key: Array) -> tuple[Array, FrameStackState]:
        observation, state = env.reset(key)
        stack = first(observation)
        return stack, FrameStackState(state, stack)

    def step(key: Array, state: FrameStackState, action: ArrayLike) -> EnvStep:
        observation, inner, reward, terminated, truncated, info = env.step(key, state.env, action)
        newest = info["final_observation"]
        final = jnp.concatenate([state.stack[..., width:], newest], axis=-1)
        stack = jnp.where(terminated | truncated, first(observation), final)
        info = {**info, "final_observation": final}
        return stack, FrameStackState(inner, stack), reward, terminated, truncated, info

    return env._replace(observation_space=stacks, reset=reset, step=step)
