"""Adapter from gymnax environments to `types.Environment`: pure functions and plain spaces."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.envs import families, registry
from accel_rl.types import MDP, Array, ArrayLike, Box, Discrete, Environment, EnvStep, PyTree, Space


def environment(name: str, **kwargs: object) -> Environment:
    """Make an environment by name, for training; see `make` for names and arguments.

    Args:
      name: name of an environment, as for `make`; or "brax:ant", "jumanji:Snake-v1" and other
        names of `families`.
      **kwargs: arguments of the environment's builder.
    """
    if families.is_family(name):
        return families.make(name, **kwargs)
    registry.resolve(name)  # imports the name's module outside the jax settings below
    with jax.numpy_dtype_promotion("standard"), jax.ensure_compile_time_eval():
        env, params = registry.build(name, **kwargs), None
        if env is None:
            env, params = registry.make(name, **kwargs)
        if isinstance(env, MDP):
            from accel_rl.envs.tabular_env import TabularEnv  # late: it imports gymnax

            env = TabularEnv(env, name)
    if isinstance(env, Environment):
        return env._replace(name=name)
    return from_gymnax(env, params, name)


def from_gymnax(env: Any, params: PyTree = None, name: str | None = None) -> Environment:
    """Convert a gymnax environment (1.0: the six-value step), and bind its parameters.

    Observations get the shape and dtype that their space declares. No result is weakly typed, so
    that states from `reset` and `step` have the same types in a compiled function. `info` has the
    environment's entries and `final_observation`.

    Args:
      env: a `gymnax.environments.environment.Environment`.
      params: its parameters, which may be traced; its defaults if None.
      name: of the result; the environment's own name if None.
    """
    # gymnax mixes dtypes, here and below, which strict promotion would refuse.
    with jax.numpy_dtype_promotion("standard"), jax.ensure_compile_time_eval():
        params = env.default_params if params is None else params
        title = env.name if name is None else name
        observations = space_of(env.observation_space(params), f"{title}'s observation space")
        actions = space_of(env.action_space(params), f"{title}'s action space")

    def observed(observation: PyTree) -> Array:
        held = jax.dtypes.canonicalize_dtype(observations.dtype)
        return jnp.reshape(jnp.asarray(observation).astype(held), observations.shape)

    def reset(key: Array) -> tuple[Array, PyTree]:
        with jax.numpy_dtype_promotion("standard"):
            observation, state = env.reset(key, params)
            return observed(observation), jax.tree.map(strong, state)

    def step(key: Array, state: PyTree, action: ArrayLike) -> EnvStep:
        action = action_of(actions, action, title)
        with jax.numpy_dtype_promotion("standard"):
            observation, state, reward, terminated, truncated, info = env.step(
                key, state, action, params
            )
            # `info` repeats the flags; they are dropped, since a wrapper's truncation would not
            # change them.
            kept = {name: info[name] for name in info if name not in ("terminated", "truncated")}
            final = observed(kept.pop("final_observation"))
            return (
                observed(observation),
                jax.tree.map(strong, state),
                jnp.reshape(jnp.asarray(reward, jnp.float32), ()),
                jnp.reshape(jnp.asarray(terminated, bool), ()),
                jnp.reshape(jnp.asarray(truncated, bool), ()),
                {**jax.tree.map(strong, kept), "final_observation": final},
            )

    return Environment(title, observations, actions, reset, step)


def space_of(space: Any, what: str = "space") -> Space:
    """Convert a space of gymnax or Gymnasium to `types.Discrete` or `types.Box`.

    A bound equal to the dtype's largest number, as in gymnax, becomes infinite.

    Args:
      space: Discrete or Box; a space of `types` is returned unchanged.
      what: name of the space in error messages.
    """
    if isinstance(space, (Discrete, Box)):
        return space
    kind = type(space).__name__
    if kind == "Discrete" and getattr(space, "start", 0) == 0:
        return Discrete(int(space.n))
    if kind == "Box":
        shape, dtype = tuple(int(size) for size in space.shape), np.dtype(space.dtype)
        low, high = (_bounds(bound, shape, dtype) for bound in (space.low, space.high))
        return Box(low, high, shape, dtype)
    raise ValueError(f"{what} must be Discrete (from 0) or Box, got {space}")


def action_of(space: Space, action: ArrayLike, title: str = "the environment") -> Array:
    """Check an action and convert it to its space's dtype, for `step` of a custom environment.

    An action of another shape would be broadcast, and yield states of another shape.

    Args:
      space: the action space.
      action: a single action, of the space's shape; integer for a Discrete space.
      title: the environment's name, for error messages.

    Returns:
      The action, in the space's dtype; its value is not checked.
    """
    action = jnp.asarray(action)
    if action.shape != space.shape:
        raise ValueError(f"an action of {title} must have the shape {space.shape}, got {action!r}")
    if isinstance(space, Discrete) and action.dtype.kind not in "iu":
        raise TypeError(f"an action of {title} must be an integer, got {action!r}")
    return action.astype(jax.dtypes.canonicalize_dtype(space.dtype))


def _bounds(bound: object, shape: tuple[int, ...], dtype: np.dtype) -> tuple[float, ...]:
    full = np.broadcast_to(np.asarray(bound, np.float64), shape).ravel()
    if dtype.kind == "f":
        full = np.where(np.abs(full) >= np.finfo(dtype).max, np.copysign(np.inf, full), full)
    return tuple(full.tolist())


def strong(leaf: ArrayLike) -> Array:
    """Return an array of the same dtype that is not weakly typed."""
    leaf = jnp.asarray(leaf)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.extended):  # such as PRNG keys
        return leaf
    return jax.lax.convert_element_type(leaf, leaf.dtype)
