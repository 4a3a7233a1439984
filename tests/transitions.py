"""Small logs that tests share: collected from the environments, or synthetic."""

import functools

import jax.numpy as jnp
import numpy as np

from accel_rl import datasets, envs
from accel_rl.types import TabularTransition

ENVIRONMENTS = ("FrozenLake-v1", "Taxi-v4", "CliffWalking-v1")


@functools.cache
def collected(name, num_rows):
    """A random policy's log of `num_rows` rows."""
    mdp = envs.make_mdp(name)
    return datasets.collect(mdp, "random", num_rows, seed=7, num_envs=4, environment=name)


def synthetic(num_states, num_actions, num_rows, seed=0, rewards=(-10, 20)):
    """Rows without any structure: every index and both discounts occur."""
    rng = np.random.default_rng(seed)

    def column(x, dtype):
        return jnp.asarray(x.astype(dtype))

    return TabularTransition(
        state=column(rng.integers(0, num_states, num_rows), np.int32),
        action=column(rng.integers(0, num_actions, num_rows), np.int32),
        reward=column(rng.integers(*rewards, num_rows), np.float32),
        next_state=column(rng.integers(0, num_states, num_rows), np.int32),
        discount=column(rng.random(num_rows) > 0.1, np.float32),
        next_action=column(rng.integers(0, num_actions, num_rows), np.int32),
    )
