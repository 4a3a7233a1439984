"""Wrappers for time limits and episode statistics."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.envs.wrappers.normalisation import gathers_statistics
from accel_rl.types import Array, ArrayLike, Environment, EnvStep, PyTree


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TimeLimitState:
    """State of an environment and the step count of its episode; a pytree."""

    env: PyTree  # state of the wrapped environment
    time: Array  # [] int32, steps taken in the episode


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StatisticsState:
    """State of an environment with return and length of its episode; a pytree."""

    env: PyTree  # state of the wrapped environment
    episode_return: Array  # [] float32, so far
    episode_length: Array  # [] int32, so far


def time_limit(env: Environment, steps: int) -> Environment:
    """Truncate episodes after a number of steps.

    An episode that terminates at the limit is both terminated and truncated. This wrapper resets a
    truncated episode itself, since the wrapped environment does not know that it stopped.

    Args:
      env: an environment; its own limits remain.
      steps: largest length of an episode.
    """
    limit = np.int32(whole("steps", steps, 1, 2**31 - 1))
    if gathers_statistics(env):
        raise ValueError(
            "time_limit must be put inside of normalise_observations: outside, each truncation "
            "would forget the statistics that env gathers"
        )

    def reset(key: Array) -> tuple[PyTree, TimeLimitState]:
        observation, state = env.reset(key)
        return observation, TimeLimitState(state, jnp.int32(0))

    def step(key: Array, state: TimeLimitState, action: ArrayLike) -> EnvStep:
        step_key, reset_key = jax.random.split(key)
        observation, inner, reward, terminated, truncated, info = env.step(
            step_key, state.env, action
        )
        time = state.time + np.int32(1)
        over, stopped = time >= limit, terminated | truncated
        again = env.reset(reset_key)
        observation, inner = jax.tree.map(
            lambda new, old: jnp.where(over, new, old), again, (observation, inner)
        )
        state = TimeLimitState(inner, jnp.where(over | stopped, jnp.zeros_like(time), time))
        return observation, state, reward, terminated, truncated | over, info

    return env._replace(reset=reset, step=step)


def episode_statistics(env: Environment) -> Environment:
    """Add `episode_return` (float32) and `episode_length` (int32) to `info`.

    They cover the episode up to and including the step; where it stopped, the whole episode. The
    return sums the rewards of `env`, so apply this wrapper before one that changes rewards.
    """

    def reset(key: Array) -> tuple[PyTree, StatisticsState]:
        observation, state = env.reset(key)
        return observation, StatisticsState(state, jnp.float32(0), jnp.int32(0))

    def step(key: Array, state: StatisticsState, action: ArrayLike) -> EnvStep:
        observation, inner, reward, terminated, truncated, info = env.step(key, state.env, action)
        total, length = state.episode_return + reward, state.episode_length + np.int32(1)
        info = {**info, "episode_return": total, "episode_length": length}
        stopped = terminated | truncated
        state = StatisticsState(
            inner,
            jnp.where(stopped, jnp.zeros_like(total), total),
            jnp.where(stopped, jnp.zeros_like(length), length),
        )
        return observation, state, reward, terminated, truncated, info

    return env._replace(reset=reset, step=step)
