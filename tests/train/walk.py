"""A tiny task for pipelines: walk to the right end of a line; compiled, or on the host."""

import time

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import agents, replay, train
from accel_rl.types import Batch, Box, Discrete, Environment

ENDS, LIMIT, GAMMA = (0, 4), 7, 0.9
SPACES = Box((-np.inf,) * 3, (np.inf,) * 3, (3,)), Discrete(2)
# What the best action is worth at 1, 2 and 3: the reward of 1 is for reaching 4.
VALUES = np.array([GAMMA**2, GAMMA, 1])
HYPER = {
    "agent": {"learning_rate": 0.01, "epsilon_steps": 1000.0, "target_period": 20},
    "gamma": GAMMA,
    "beta_steps": 500.0,
}


def observe(position):
    position = jnp.asarray(position, jnp.float32)
    return jnp.stack(
        [jnp.cos(position), jnp.sin(0.7 * position) + 0.1 * position, position / 4], -1
    )


def environment():
    def reset(key):
        position = jax.random.randint(key, (), 1, 4)
        return observe(position), (position, jnp.int32(0))

    def step(key, state, action):
        position, time = state[0] + 2 * action - 1, state[1] + np.int32(1)
        terminated = (position == ENDS[0]) | (position == ENDS[1])
        truncated = ~terminated & (time == LIMIT)
        final, again = observe(position), reset(key)
        stopped = terminated | truncated
        observation, state = jax.tree.map(
            lambda new, old: jnp.where(stopped, new, old), again, (final, (position, time))
        )
        reward = (position == ENDS[1]).astype(jnp.float32)
        return observation, state, reward, terminated, truncated, {"final_observation": final}

    return Environment("walk", *SPACES, reset, step)


class HostWalk(gymnasium.Env):
    """The same on the host; may be slow."""

    def __init__(self, seconds=0.0):
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.seconds = seconds

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.time = int(self.np_random.integers(1, 4)), 0
        return self._observe(), {}

    def step(self, action):
        time.sleep(self.seconds)
        self.position += 2 * int(action) - 1
        self.time += 1
        terminated = self.position in ENDS
        truncated = not terminated and self.time == LIMIT
        reward = float(self.position == ENDS[1])
        return self._observe(), reward, terminated, truncated, {}

    def _observe(self):
        p = np.float32(self.position)
        return np.array([np.cos(p), np.sin(0.7 * p) + 0.1 * p, p / 4], np.float32)


def program(sampler="uniform", *, env=None, n_step=1, port=None, **schedule):
    """A DQN agent that learns the walk; `port(memory)` makes a port of its memory."""
    env = environment() if env is None else env
    agent = agents.dqn(env.observation_space, env.action_space, hidden=(16,))
    schedule = {"num_envs": 4, "learning_starts": 64, **schedule}
    memory = replay.make(
        train.example(env, agent), 256, 16, sampler, num_envs=schedule["num_envs"], n_step=n_step
    )
    return train.make(env, agent, memory if port is None else port(memory), **schedule)


def worth(agent, state):
    """What an agent holds the actions for worth at 1, 2 and 3: [3, 2]."""
    observation = observe(jnp.repeat(jnp.arange(1, 4), 2))
    zeros = jnp.zeros(6)
    batch = Batch(observation, jnp.tile(jnp.arange(2), 3), zeros, zeros, observation)
    # Of a target of 0.
    errors = agent.td_error(agent.critics(state), batch, jax.random.key(0))
    return -np.asarray(errors).reshape(3, 2)
