"""Wrapper that normalises observations by running statistics."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import within
from accel_rl.envs.wrappers.observations import require_box
from accel_rl.types import Array, ArrayLike, Box, Environment, EnvStep, PyTree


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RunningStatistics:
    """Running mean and variance of observations; a pytree.

    It stores the variance, not a sum of squares. Once the float32 count reaches 2^24, where adding
    1 no longer changes it, mean and variance continue as moving averages.
    """

    count: Array  # [...] float32
    mean: Array  # [..., *observation] float32
    variance: Array  # [..., *observation] float32, divided by the count (biased)

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> "RunningStatistics":
        """Return the statistics of no observations."""
        return cls(jnp.float32(0), jnp.zeros(shape, jnp.float32), jnp.zeros(shape, jnp.float32))

    def seen(self, observation: Array) -> "RunningStatistics":
        """Return the statistics updated by one observation.

        After B. P. Welford (Technometrics 4, 1962).
        """
        count = self.count + 1
        before = observation - self.mean
        mean = self.mean + before / count
        after = observation - mean
        return RunningStatistics(
            count, mean, self.variance + (before * after - self.variance) / count
        )

    def merged(self) -> "RunningStatistics":
        """Merge the statistics along the first axis.

        After T. F. Chan, G. H. Golub and R. J. LeVeque (Technical Report 222, Yale, 1979).
        """
        total = jnp.sum(self.count, axis=0)
        share = self.count / jnp.maximum(total, 1)
        share = jnp.reshape(share, share.shape + (1,) * (self.mean.ndim - share.ndim))
        mean = jnp.sum(share * self.mean, axis=0)
        spread = self.variance + jnp.square(self.mean - mean)
        return RunningStatistics(total, mean, jnp.sum(share * spread, axis=0))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class NormaliseState:
    """State of an environment and the statistics of its observations; a pytree."""

    env: PyTree  # state of the wrapped environment
    statistics: RunningStatistics
    # True if updated while stepping, False if given.
    gathered: bool = dataclasses.field(metadata={"static": True})


def gathers_statistics(env: Environment) -> bool:
    """Return whether the environment's state has statistics that a reset discards."""

    def gathering(node: object) -> bool:
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
    """Normalise observations to mean 0 and variance 1, clipped to [-clip, clip].

    Every observation, including final ones and those after a reset, updates the statistics before
    it is normalised. Under `vmap` each environment has its own statistics, stored in the training
    state. For evaluation, combine them with `statistics.merged()` and pass the result here; given
    statistics are not updated. A replay buffer stores observations as normalised when they were
    collected, so for off-policy agents prefer `agents.normalise_observations`.

    Args:
      env: an environment with Box observations.
      statistics: fixed statistics; None: gathered while stepping.
      epsilon: added to the variance.
      clip: largest magnitude of normalised observations; may be infinite.
    """
    space = require_box(env, "normalise_observations")
    for name, value in (("epsilon", epsilon), ("clip", clip)):
        within(name, value, "(0, inf]")
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

    def step(key: Array, state: NormaliseState, action: ArrayLike) -> EnvStep:
        observation, inner, reward, terminated, truncated, info = env.step(key, state.env, action)
        final = info["final_observation"]
        at_end = seen(state.statistics, final)
        # If the episode continues, both observations are the same, and count once.
        by = jax.tree.map(
            lambda new, old: jnp.where(terminated | truncated, new, old),
            seen(at_end, observation),
            at_end,
        )
        info = {**info, "final_observation": scaled(final, at_end)}
        state = NormaliseState(inner, by, state.gathered)
        return scaled(observation, by), state, reward, terminated, truncated, info

    return env._replace(observation_space=normal, reset=reset, step=step)
