"""Trainings small enough to run in a test."""

import json

import jax
import numpy as np

from accel_rl import agents, envs, replay, train

STEPS, PERIOD = 900, 100
HYPER = {"agent": {"epsilon_steps": 500, "target_period": 20}}


def program(sampler="uniform", hidden=(16,), capacity=256, optimiser=None, **schedule):
    env = envs.environment("CartPole-v1")
    spaces = env.observation_space, env.action_space
    agent = agents.dqn(*spaces, hidden=hidden, optimiser=optimiser)
    memory = replay.make(train.example(env, agent), capacity, 16, sampler, num_envs=2)
    return train.make(env, agent, memory, num_envs=2, learning_starts=100, **schedule)


def key(seeds=None):
    return jax.random.key(7) if seeds is None else jax.random.split(jax.random.key(7), seeds)


def assert_same(a, b):
    """Every array of two states has the same bits."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for path, (x, y) in zip(
        jax.tree_util.tree_flatten_with_path(a)[0],
        zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True),
        strict=True,
    ):
        name = jax.tree_util.keystr(path[0])
        assert (x.shape, x.dtype) == (y.shape, y.dtype), name
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes(), name


def untimed(rows):
    """Rows without the one thing that is measured, so that they can be compared."""
    return json.dumps([{name: row[name] for name in row if name != "seconds"} for row in rows])


class Kept:
    """A logger that keeps what it is told."""

    def __init__(self):
        self.begun, self.rows, self.closed = [], [], 0

    def begin(self, rows):
        self.begun.append(rows if rows is None else list(rows))

    def log(self, row):
        self.rows.append(row)

    def close(self):
        self.closed += 1
