"""Record of one greedy episode, step by step, to look at."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents import Agent
from accel_rl.arguments import whole
from accel_rl.envs import HostEnvironment
from accel_rl.train.host_evaluate import greedy
from accel_rl.types import Array, Environment, PyTree


class Episode(NamedTuple):
    """Episode of T steps, in NumPy arrays."""

    observations: PyTree  # [T + 1, *observation]; the last is the one before any reset
    actions: PyTree  # [T, *action]
    rewards: np.ndarray  # [T] float32
    terminated: bool  # False if it was truncated, or cut after max_steps


def record(
    env: Environment, agent: Agent, policy: PyTree, key: Array, max_steps: int = 1_000
) -> Episode:
    """Play one greedy episode, and return all of its steps.

    A loop in Python over a compiled step: for one episode that a person looks at. `evaluator` plays
    many and returns their scores.

    Args:
      env: one environment.
      agent: acts with `explore=False`.
      policy: of the agent, without an axis of seeds.
      key: PRNG key.
      max_steps: steps after which the episode is cut.
    """
    whole("max_steps", max_steps, 1)
    reset_key, step_key = jax.random.split(key)

    @jax.jit
    def step(state: PyTree, memory: PyTree, observation: PyTree, time: Array) -> PyTree:
        act_key, env_key = jax.random.split(jax.random.fold_in(step_key, time))
        seen = jax.tree.map(lambda leaf: leaf[None], observation)
        actions, memory = agent.act(policy, memory, seen, act_key, time, explore=False)
        action = jax.tree.map(lambda leaf: leaf[0], actions)
        observation, state, reward, terminated, truncated, info = env.step(env_key, state, action)
        carry = state, memory, observation
        return carry, (info["final_observation"], action, reward, terminated, truncated)

    observation, state = jax.jit(env.reset)(reset_key)
    carry, seen = (state, agent.memory(1), observation), [observation]
    taken: list[PyTree] = []
    rewards: list[float] = []
    terminated = truncated = False
    while not (terminated or truncated or len(taken) == max_steps):
        carry, made = step(*carry, jnp.int32(len(taken)))
        after, action, reward, terminated, truncated = jax.device_get(made)
        seen.append(after)
        taken.append(action)
        rewards.append(reward)
    return Episode(_stack(seen), _stack(taken), np.array(rewards, np.float32), bool(terminated))


def host_record(
    env: HostEnvironment, agent: Agent, policy: PyTree, seed: int, max_steps: int = 1_000
) -> Episode:
    """Play one greedy episode on the host; arguments and result are as for `record`.

    Args:
      env: a batch of one environment, which is reset.
      agent: as for `record`.
      policy: as for `record`.
      seed: of the environment.
      max_steps: as for `record`.
    """
    whole("max_steps", max_steps, 1)
    if env.num_envs != 1:
        raise ValueError(f"env must be a batch of one environment, got {env.num_envs}")
    act = greedy(agent)
    observation, memory = env.reset(seed), agent.memory(1)
    seen = [observation[0]]
    taken: list[np.ndarray] = []
    rewards: list[float] = []
    terminated = truncated = False
    while not (terminated or truncated or len(taken) == max_steps):
        action, memory = act(policy, memory, observation)
        step = env.step(np.asarray(action))
        observation = step.observation
        seen.append(step.final_observation[0])
        taken.append(np.asarray(action)[0])
        rewards.append(step.reward[0])
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
    return Episode(_stack(seen), _stack(taken), np.array(rewards, np.float32), terminated)


def _stack(steps: list[PyTree]) -> PyTree:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *steps)
