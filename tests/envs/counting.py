"""An environment that counts, and playing any one at random."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.testing.environment import random_actions
from accel_rl.types import Box, Environment

ENVS, STEPS = 3, 60


@dataclasses.dataclass(frozen=True)
class CountState:
    """How far a count has come, and from where; a pytree."""

    start: jax.Array  # [] float32, drawn at reset
    time: jax.Array  # [] int32


jax.tree_util.register_dataclass(CountState, ["start", "time"], [])


def counting(length=7, truncates=False):
    """Observes (time, start), pays the action times time, stops after `length` steps."""

    def observe(state):
        return jnp.stack([state.time.astype(jnp.float32), state.start])

    def reset(key):
        state = CountState(jax.random.uniform(key, (), jnp.float32), jnp.int32(0))
        return observe(state), state

    def step(key, state, action):
        action = jnp.asarray(action)
        if action.shape != (1,):
            raise ValueError(f"an action must have the shape (1,), got {action!r}")
        after = CountState(state.start, state.time + 1)
        stopped = after.time >= length
        first, fresh = reset(key)
        final = observe(after)
        observation, state = jax.tree.map(
            lambda new, old: jnp.where(stopped, new, old), (first, fresh), (final, after)
        )
        reward = action[0] * after.time.astype(jnp.float32)
        no = jnp.zeros_like(stopped)
        flags = (no, stopped) if truncates else (stopped, no)
        return observation, state, reward, *flags, {"final_observation": final}

    space = Box((0.0, 0.0), (np.inf, 1.0), (2,))
    return Environment("counting", space, Box((-2.0,), (2.0,), (1,)), reset, step)


def play(env, steps=STEPS, seed=0):
    """First observations [ENVS, ...], and of each step [steps, ENVS, ...], actions among them."""
    actions = random_actions(env.action_space, (steps, ENVS), seed)

    @jax.jit
    def run(keys):
        def one(state, inputs):
            observation, state, *rest = jax.vmap(env.step)(inputs[0], state, inputs[1])
            return state, (observation, *rest)

        observation, state = jax.vmap(env.reset)(keys[0])
        state, played = jax.lax.scan(one, state, (keys[1:], actions))
        return observation, state, played

    keys = jax.random.split(jax.random.key(seed), (steps + 1, ENVS))
    first, state, played = jax.tree.map(np.asarray, run(keys))
    return first, state, (np.asarray(actions), *played)
