"""Finite MDPs and datasets for the tests, made without the code under test."""

import functools

import gymnasium
import jax.numpy as jnp
import numpy as np

from accel_rl.datasets import DatasetInfo, TabularDataset
from accel_rl.types import MDP, TabularTransition


def mdp_of(probability, next_state, reward, terminated, initial, time_limit=None):
    return MDP(
        jnp.asarray(probability, jnp.float32),
        jnp.asarray(next_state, jnp.int32),
        jnp.asarray(reward, jnp.float32),
        jnp.asarray(terminated, bool),
        jnp.asarray(initial, jnp.float32),
        time_limit,
    )


@functools.cache
def gymnasium_mdp(name, time_limit):
    """The tables of a toy-text environment, padded with outcomes of probability 0."""
    env = gymnasium.make(name).unwrapped
    num_states, num_actions = env.observation_space.n, env.action_space.n
    outcomes = max(len(env.P[s][a]) for s in env.P for a in env.P[s])
    tables = np.zeros((4, num_states, num_actions, outcomes))
    for s in range(num_states):
        for a in range(num_actions):
            for k, row in enumerate(env.P[s][a]):
                tables[:, s, a, k] = row
    return mdp_of(*tables, env.initial_state_distrib, time_limit)


def ring(time_limit, num_states=5):
    """States in a ring that is never left: action 0 stays, 1 and 2 move on by as many states.

    Deterministic, without termination; episodes start anywhere with probabilities 1 : 2 : 3 : ...
    """
    s, a = np.indices((num_states, 3))
    initial = np.arange(1, num_states + 1)
    return mdp_of(
        np.ones((num_states, 3, 1)),
        ((s + a) % num_states)[..., None],
        (s * 10 + a)[..., None],
        np.zeros((num_states, 3, 1)),
        initial / initial.sum(),
        time_limit,
    )


def countdown(length, time_limit):
    """One action; the episode terminates after exactly `length` steps, with reward 1."""
    s = np.arange(length)[:, None, None]
    initial = np.arange(length) == 0
    last = s == length - 1
    return mdp_of(np.ones(s.shape), np.minimum(s + 1, length - 1), last, last, initial, time_limit)


def dataset_of(episodes, num_states, num_actions, **info):
    """A dataset from `(states, actions, rewards, terminated)` of each episode.

    With T rows there are T + 1 states and actions, the last action being the one after the end.
    """
    rows = []
    for number, (states, actions, rewards, terminated) in enumerate(episodes):
        for t, reward in enumerate(rewards):
            end = terminated and t == len(rewards) - 1
            after = 0 if end else actions[t + 1]
            rows.append((states[t], actions[t], reward, states[t + 1], 1 - end, after, number))
    s, a, r, s2, d, a2, e = zip(*rows, strict=True)
    return TabularDataset(
        TabularTransition(
            state=jnp.asarray(s, jnp.int32),
            action=jnp.asarray(a, jnp.int32),
            reward=jnp.asarray(np.asarray(r, np.float32)),
            next_state=jnp.asarray(s2, jnp.int32),
            discount=jnp.asarray(d, jnp.float32),
            next_action=jnp.asarray(a2, jnp.int32),
        ),
        jnp.asarray(e, jnp.int32),
        DatasetInfo(
            **{"environment": "test", "policy": "given", **info},
            num_states=num_states,
            num_actions=num_actions,
        ),
    )


def small():
    """Three episodes, 6 rows, of which the first terminates and the others are truncated."""
    return dataset_of(
        [
            ([0, 1, 2, 3], [0, 1, 1, 9], [0.0, -0.5, 1.0], True),
            ([1, 1], [1, 0], [0.25], False),
            ([2, 0, 2], [0, 1, 1], [-0.0, 2.0], False),
        ],
        num_states=4,
        num_actions=2,
        seed=3,
    )


def bits(dataset):
    """Every column's type and bytes, and what is known of the data."""
    columns = {**vars(dataset.transitions), "episode": dataset.episode}
    table = {name: np.asarray(column) for name, column in columns.items()}
    return {name: (str(c.dtype), c.shape, c.tobytes()) for name, c in table.items()}, dataset.info
