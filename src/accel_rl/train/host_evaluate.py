"""Greedy evaluation of a policy in environments that step on the host."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents import Agent
from accel_rl.arguments import whole
from accel_rl.envs import HostEnvironment
from accel_rl.train.collection import fresh_memory
from accel_rl.types import Array, ArrayLike, PyTree


def host_evaluator(
    env: HostEnvironment, agent: Agent, episodes: int = 100, max_steps: int = 10_000
) -> Callable[[PyTree, int], np.ndarray]:
    """Make a function that runs greedy evaluation episodes on the host.

    Each environment plays a number of episodes that is fixed beforehand, the same for all up to
    one: were the first to end counted, short ones would be counted too often.

    Args:
      env: E environments for evaluation alone; `evaluate` resets them, and nobody else may step
        them meanwhile.
      agent: acts with `explore=False`.
      episodes: number of episodes.
      max_steps: an episode that has not ended by then counts with its rewards so far.

    Returns:
      evaluate(policy, seed): returns of the episodes, [episodes] float32; environment i is reset
        with `seed` + i.
    """
    whole("episodes", episodes, 1)
    whole("max_steps", max_steps, 1)
    num = env.num_envs
    shares = np.array([len(part) for part in np.array_split(np.arange(episodes), num)])

    act, fresh = greedy(agent), jax.jit(functools.partial(fresh_memory, agent))

    def evaluate(policy: PyTree, seed: int) -> np.ndarray:
        observation, memory = env.reset(seed), agent.memory(num)
        length = np.ones(num, np.int32)  # of the episodes, with the step to come
        left = shares.copy()
        returns: list[float] = []
        while len(returns) < episodes:
            action, memory = act(policy, memory, observation)
            step = env.step(np.asarray(action), length == max_steps)
            observation, stopped = step.observation, step.terminated | step.truncated
            returns += step.episode_return[stopped & (left > 0)].tolist()
            left -= stopped
            length = np.where(stopped, 1, length + 1)
            if jax.tree.leaves(memory):
                memory = fresh(memory, stopped)
        return np.array(returns, np.float32)

    return evaluate


def greedy(agent: Agent) -> Callable[[PyTree, PyTree, ArrayLike], tuple[Array, PyTree]]:
    """Return the compiled greedy act(policy, memory, observation [E, ...]) of an agent."""

    def act(policy: PyTree, memory: PyTree, observation: Array) -> tuple[Array, PyTree]:
        key, step = jax.random.key(0), jnp.int32(0)  # greedy actions depend on neither
        return agent.act(policy, memory, observation, key, step, explore=False)

    return jax.jit(act)
