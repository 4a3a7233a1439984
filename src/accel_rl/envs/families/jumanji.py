"""Jumanji's environments, https://github.com/instadeepai/jumanji."""

from typing import Any

import jax
import jax.numpy as jnp
import jumanji
import numpy as np

from accel_rl.control_flow import cond_under_vmap
from accel_rl.envs.adapter import action_of, strong
from accel_rl.types import Array, ArrayLike, Box, Discrete, Environment, EnvStep, PyTree


def make(name: str, **kwargs: Any) -> Environment:
    """Make an environment of Jumanji whose actions are integers.

    An observation of several arrays becomes one vector, field by field, with the mask of valid
    actions where there is one: agents here read one array, and may choose an invalid action.

    Args:
      name: such as "Snake-v1".
      **kwargs: of `jumanji.make`.
    """
    with jax.numpy_dtype_promotion("standard"):
        try:
            env: Any = jumanji.make(name, **kwargs)
        except ValueError as error:
            known = ", ".join(jumanji.registered_environments())
            raise ValueError(f"jumanji has no environment {name!r}; there are {known}") from error
        values: Any = getattr(env.action_spec, "num_values", None)
        if np.ndim(values) or values is None:
            raise ValueError(f"jumanji:{name} has actions {env.action_spec}, not integers below n")
        example = jax.eval_shape(env.reset, jax.random.key(0))[1].observation
    leaves = jax.tree.leaves(example)
    shape = leaves[0].shape if len(leaves) == 1 else (sum(leaf.size for leaf in leaves),)
    actions = Discrete(int(values))
    observations = Box(-np.inf, np.inf, shape)

    def observed(observation: PyTree) -> Array:
        parts = [leaf.astype(jnp.float32).ravel() for leaf in jax.tree.leaves(observation)]
        return jnp.concatenate(parts).reshape(shape)

    def start(key: Array) -> tuple[PyTree, PyTree]:
        with jax.numpy_dtype_promotion("standard"):
            state, first = env.reset(key)
        return jax.tree.map(strong, (first.observation, state))

    def reset(key: Array) -> tuple[Array, PyTree]:
        observation, state = start(key)
        return observed(observation), state

    def step(key: Array, state: PyTree, action: ArrayLike) -> EnvStep:
        action = action_of(actions, action, name)
        with jax.numpy_dtype_promotion("standard"):
            after, made = env.step(state, action)
        last, goes_on = made.last(), made.discount > 0
        # Flattened only after the reset: vectors that pass through it cost a copy of each.
        kept = jax.tree.map(strong, (made.observation, after))
        observation, state = cond_under_vmap(last, lambda _, key: start(key), kept, key)
        reward = made.reward.astype(jnp.float32)
        info = {"final_observation": observed(kept[0])}
        return observed(observation), state, reward, last & ~goes_on, last & goes_on, info

    return Environment(name, observations, actions, reset, step)
