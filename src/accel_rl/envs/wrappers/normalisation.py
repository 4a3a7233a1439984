"""Observations shifted and scaled by running statistics."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import instance, real
from accel_rl.envs.wrappers.checks import require_box
from accel_rl.types import Array, ArrayLike, Box, Environment


@dataclasses.dataclass(frozen=True)
class RunningStatistics:
    """Mean and variance of what has been seen; a pytree.

    The variance itself is kept, not a sum of squares: where the count reaches 2^24, and adding 1
    changes it no more, both go on as moving averages.
    """

    count: Array  # [...] float32
    mean: Array  # [..., *observation] float32
    variance: Array  # [..., *observation] float32, over the count, not one less

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> "RunningStatistics":
        """Of nothing seen."""
        return cls(jnp.float32(0), jnp.zeros(shape, jnp.float32), jnp.zeros(shape, jnp.float32))

    def seen(self, observation: Array) -> "RunningStatistics":
        """With one more observation, after B. P. Welford (Technometrics 4, 1962)."""
        count = self.count + 1
        before = observation - self.mean
        mean = self.mean + before / count
        after = observation - mean
        return RunningStatistics(
            count, mean, self.variance + (before * after - self.variance) / count
        )

    def merged(self) -> "RunningStatistics":
        """Of all those along the first axis together.

        After T. F. Chan, G. H. Golub and R. J. LeVeque (Technical Report 222, Yale, 1979).
        """
        total = jnp.sum(self.count, axis=0)
        share = self.count / jnp.maximum(total, 1)
        share = jnp.reshape(share, share.shape + (1,) * (self.mean.ndim - share.ndim))
        mean = jnp.sum(share * self.mean, axis=0)
        spread = self.variance + jnp.square(self.mean - mean)
        return RunningStatistics(total, mean, jnp.sum(share * spread, axis=0))


@dataclasses.dataclass(frozen=True)
class NormaliseState:
    """An environment's state and the statistics of its observations; a pytree."""

    env: Any  # state of the wrapped environment
    statistics: RunningStatistics
    gathered: bool  # while stepping, rather than given; static


jax.tree_util.register_dataclass(RunningStatistics, ["count", "mean", "variance"], [])
jax.tree_util.register_dataclass(NormaliseState, ["env", "statistics"], ["gathered"])


def gathers_statistics(env: Environment) -> bool:
    """Whether statistics that a reset forgets are somewhere in the environment's state."""

    def gathering(node: Any) -> bool:
        return isinstance(node, NormaliseState) and node.gathered

    _, state = jax.eval_shape(lambda: env.reset(jax.random.key(0)))
    return any(map(gathering, jax.tree.leaves(state, is_leaf=gathering)))


def normalise_observations(
    env: Environment,
    statistics: RunningStatistics | None = None,
    *,
    epsilon: float = 1e-8,
    clip: float = 10.0,
) -> Environment:
    """Observations less their mean, over their standard deviation, cut to [-clip, clip].

    Every observation counts, final ones and those after a reset too, before it is normalised
    itself. Of several environments under `vmap` each has statistics of its own. Those of a training
    are in its state; `statistics.merged()` makes one of many, and given here it stays as it is, to
    evaluate with. What a replay memory holds was normalised when it was seen: agents that learn
    from old experience had better normalise it themselves.

    Args:
      env: an environment of Box observations.
      statistics: to use unchanged; gathered while stepping if None.
      epsilon: added to the variance.
      clip: largest size of what comes out; may be infinite.

    Raises:
      TypeError: if env is no environment, its observations are Discrete, or an argument is of
        another type.
      ValueError: if epsilon or clip is not above 0, or statistics are of another shape.
    """
    space = require_box(env, "normalise_observations")
    for name, value in (("epsilon", epsilon), ("clip", clip)):
        if not real(name, value) > 0:
            raise ValueError(f"{name} must be above 0, got {value}")
    if statistics is not None:
        instance("statistics", statistics, RunningStatistics)
    if statistics is not None and statistics.mean.shape != space.shape:
        raise ValueError(
            f"statistics must be of observations of shape {space.shape}, got "
            f"{statistics.mean.shape}: merged() makes one of several"
        )
    size = len(space.low)
    normal = Box((-float(clip),) * size, (float(clip),) * size, space.shape)

    def scaled(observation: Array, by: RunningStatistics) -> Array:
        deviation = jnp.sqrt(by.variance + np.float32(epsilon))
        return jnp.clip((observation.astype(jnp.float32) - by.mean) / deviation, -clip, clip)

    def seen(by: RunningStatistics, observation: Array) -> RunningStatistics:
        return by.seen(observation.astype(jnp.float32)) if statistics is None else by

    def reset(key: Array) -> tuple[Array, NormaliseState]:
        observation, state = env.reset(key)
        by = RunningStatistics.none(space.shape) if statistics is None else statistics
        by = seen(by, observation)
        return scaled(observation, by), NormaliseState(state, by, statistics is None)

    def step(key: Array, state: NormaliseState, action: ArrayLike) -> Any:
        observation, inner, reward, terminated, truncated, info = env.step(key, state.env, action)
        final = info["final_observation"]
        at_end = seen(state.statistics, final)
        # Where nothing stopped both observations are the same, and count once.
        by = jax.tree.map(
            lambda new, old: jnp.where(terminated | truncated, new, old),
            seen(at_end, observation),
            at_end,
        )
        info = {**info, "final_observation": scaled(final, at_end)}
        state = NormaliseState(inner, by, state.gathered)
        return scaled(observation, by), state, reward, terminated, truncated, info

    return env._replace(observation_space=normal, reset=reset, step=step)
