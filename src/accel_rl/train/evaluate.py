"""Greedy evaluation of a policy."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from accel_rl.agents import Agent
from accel_rl.arguments import whole
from accel_rl.envs.wrappers.normalisation import gathers_statistics
from accel_rl.types import Array, Environment, PyTree


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Greedy evaluation at the end of training segments."""

    episodes: int = 100  # for each seed
    every: int = 50_000  # environment steps between two evaluations
    max_steps: int = 10_000  # an episode counts with its rewards until then

    def __post_init__(self) -> None:
        """Raise TypeError if a number is not an int, ValueError if it is below 1."""
        for field in dataclasses.fields(self):
            whole(field.name, getattr(self, field.name), 1)


def check_evaluated(env: Environment) -> None:
    """Raise ValueError for an environment whose observations in new episodes would differ."""
    if gathers_statistics(env):
        raise ValueError(
            f"evaluation of {env.name} would normalise with new statistics: evaluate with "
            "normalise_observations(env, statistics.merged()), or normalise in the agent, "
            "agents.normalise_observations"
        )


def evaluator(
    env: Environment, agent: Agent, episodes: int = 100, max_steps: int = 10_000
) -> Callable[[PyTree, Array], Array]:
    """Make a function that runs greedy evaluation episodes.

    Args:
      env: one environment.
      agent: acts with `explore=False`.
      episodes: number of episodes, run in parallel.
      max_steps: an episode that has not ended by then counts with its rewards so far.

    Returns:
      evaluate(policy, key): returns of the episodes, [episodes] float32.

    Raises:
      ValueError: if the environment gathers statistics of observations, which a reset discards.
    """
    whole("episodes", episodes, 1)
    whole("max_steps", max_steps, 1)
    check_evaluated(env)

    def evaluate(policy: PyTree, key: Array) -> Array:
        reset_key, step_key = jax.random.split(key)
        observation, state = jax.vmap(env.reset)(jax.random.split(reset_key, episodes))
        start = (
            *(jnp.int32(0), observation, state, agent.memory(episodes)),
            *(jnp.zeros(episodes, jnp.float32), jnp.zeros(episodes, bool)),
        )

        def unfinished(carry: PyTree) -> Array:
            return (carry[0] < max_steps) & ~jnp.all(carry[-1])

        def step(carry: PyTree) -> PyTree:
            time, observation, state, memory, total, stopped = carry
            act_key, env_key = jax.random.split(jax.random.fold_in(step_key, time))
            action, memory = agent.act(policy, memory, observation, act_key, time, explore=False)
            observation, state, reward, terminated, truncated, _ = jax.vmap(env.step)(
                jax.random.split(env_key, episodes), state, action
            )
            total = total + jnp.where(stopped, jnp.zeros_like(reward), reward)
            stopped = stopped | terminated | truncated
            return time + 1, observation, state, memory, total, stopped

        return jax.lax.while_loop(unfinished, step, start)[-2]

    return evaluate
