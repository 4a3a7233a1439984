"""Brax's environments, https://github.com/google/brax, one at a time and without its wrappers."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

with warnings.catch_warnings():  # of the simulators that it looks for and does not need
    warnings.simplefilter("ignore")
    import brax.envs

from accel_rl.envs.adapter import action_of, strong
from accel_rl.types import Array, ArrayLike, Box, Environment, EnvStep, PyTree

EPISODE = 1_000  # steps, as of brax's training


def make(name: str, *, episode_length: int = EPISODE, **kwargs: Any) -> Environment:
    """Make an environment of brax.

    As in brax's own training, an episode starts again from the first state of the environment,
    since a new one costs as much as many steps, and is truncated after `episode_length` steps.

    Args:
      name: such as "ant".
      episode_length: steps after which an episode is truncated.
      **kwargs: of `brax.envs.get_environment`, such as backend="spring".
    """
    known = sorted(brax.envs._envs)
    if name not in known:
        raise ValueError(f"brax has no environment {name!r}; there are {', '.join(known)}")
    with jax.numpy_dtype_promotion("standard"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # brax is maintained no longer, which its page says
        env = brax.envs.get_environment(name, **kwargs)
        observations = Box(-np.inf, np.inf, (int(env.observation_size),))
        actions = Box(-1.0, 1.0, (int(env.action_size),))

    def reset(key: Array) -> tuple[Array, PyTree]:
        with jax.numpy_dtype_promotion("standard"):
            first = _plain(env.reset(key))
        return first.obs, (first, first, jnp.int32(0))

    def step(key: Array, state: PyTree, action: ArrayLike) -> EnvStep:
        del key  # brax's steps are deterministic
        action = action_of(actions, action, name)
        first, now, time = state
        with jax.numpy_dtype_promotion("standard"):
            after = _plain(env.step(now, action))
        time = time + np.int32(1)
        terminated = after.done > 0
        truncated = ~terminated & (time >= np.int32(episode_length))
        stopped = terminated | truncated
        kept = jax.tree.map(lambda new, old: jnp.where(stopped, old, new), after, first)
        state = first, kept, jnp.where(stopped, np.int32(0), time)
        info = {"final_observation": after.obs}
        return kept.obs, state, after.reward, terminated, truncated, info

    return Environment(name, observations, actions, reset, step)


def _plain(state: Any) -> Any:
    """Give a state's observation, reward and end the types that a scan keeps."""
    held = jax.tree.map(strong, state)
    return held.replace(obs=held.obs.astype(jnp.float32), reward=held.reward.astype(jnp.float32))
