"""Agents that normalise observations by running statistics."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.agent import Agent, Learned
from accel_rl.arguments import within
from accel_rl.types import Array, ArrayLike, Batch, Box, PyTree


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Statistics:
    """Running mean and variance of each element of the observations; a pytree."""

    count: Array  # [] float32, observations
    mean: Array  # [*observation] float32
    variance: Array  # [*observation] float32, over `count`; 1 before the first observation

    @staticmethod
    def start(shape: tuple[int, ...]) -> "Statistics":
        """Return the statistics of no observations: mean 0, variance 1."""
        return Statistics(
            jnp.float32(0), jnp.zeros(shape, jnp.float32), jnp.ones(shape, jnp.float32)
        )

    def include(self, observation: Array, included: Array) -> "Statistics":
        """Return the statistics updated by a batch.

        Args:
          observation: [B, *observation].
          included: [B] bool; False excludes an observation.

        Reference: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
          computing sample variances", 1979, with means in place of sums, which stay bounded.
        """
        x = jnp.asarray(observation, jnp.float32)
        weight = included.astype(jnp.float32).reshape(-1, *[1] * (x.ndim - 1))
        count = jnp.sum(weight)
        mean = jnp.sum(weight * x, axis=0) / jnp.maximum(count, 1)
        variance = jnp.sum(weight * jnp.square(x - mean), axis=0) / jnp.maximum(count, 1)
        share = count / jnp.maximum(self.count + count, 1)
        apart = mean - self.mean
        return Statistics(
            count=self.count + count,
            mean=self.mean + share * apart,
            # In this form a share of 1 (the first batch) drops the initial variance exactly.
            variance=(1 - share) * self.variance
            + share * variance
            + share * (1 - share) * jnp.square(apart),
        )

    def normalise(self, observation: Array, clip: float) -> Array:
        """Return (observation - mean) / standard deviation, clipped; shape [..., *observation]."""
        apart = jnp.asarray(observation, jnp.float32) - self.mean
        return jnp.clip(apart * jax.lax.rsqrt(self.variance + np.float32(1e-8)), -clip, clip)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Normalised:
    """State, policy or critics of the wrapped agent, with the statistics; a pytree."""

    inner: PyTree  # the agent's state, policy or critics
    statistics: Statistics


def normalise_observations(agent: Agent, clip: float = 10.0) -> Agent:
    """Wrap an agent so that it reads observations with running mean 0 and variance 1.

    The statistics are updated in `learn`, from batches: an observation counts each time it is
    sampled, unless its weight is 0. Before the first update observations are only clipped. The
    replay buffer stores raw observations, so the current statistics normalise all samples alike.
    State, policy and critics hold the statistics.

    Args:
      agent: with a Box observation space.
      clip: largest magnitude of normalised observations.
    """
    space = agent.observation_space
    if not isinstance(space, Box):
        raise TypeError(f"normalise_observations needs a Box observation space, got {space!r}")
    within("clip", clip, "(0, inf]")

    def normalised(statistics: Statistics, batch: Batch) -> Batch:
        return dataclasses.replace(
            batch,
            observation=statistics.normalise(batch.observation, clip),
            next_observation=statistics.normalise(batch.next_observation, clip),
        )

    def init(key: Array, **hyperparameters: ArrayLike) -> Normalised:
        return Normalised(agent.init(key, **hyperparameters), Statistics.start(space.shape))

    def act(
        policy: Normalised,
        memory: PyTree,
        observation: Array,
        key: Array,
        step: ArrayLike,
        explore: bool = True,
    ) -> tuple[Array, PyTree]:
        seen = policy.statistics.normalise(observation, clip)
        return agent.act(policy.inner, memory, seen, key, step, explore)

    def learn(
        state: Normalised, batch: Batch, weights: Array, key: Array
    ) -> tuple[Normalised, Learned]:
        before = state.statistics  # the statistics that `act` and `td_error` use
        inner, learned = agent.learn(state.inner, normalised(before, batch), weights, key)
        return Normalised(inner, before.include(batch.observation, weights > 0)), learned

    def td_error(critics: Normalised, batch: Batch, key: Array) -> Array:
        return agent.td_error(critics.inner, normalised(critics.statistics, batch), key)

    return agent._replace(
        init=init,
        policy=lambda state: Normalised(agent.policy(state.inner), state.statistics),
        act=act,
        learn=learn,
        td_error=td_error,
        critics=lambda state: Normalised(agent.critics(state.inner), state.statistics),
    )
