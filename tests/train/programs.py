"""A task and an agent so plain that Python can follow a training of them, and programs of both."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import replay, train
from accel_rl.agents import Agent, Learned, Limits
from accel_rl.agents.hyperparameters import resolve
from accel_rl.types import Array, Box, Environment

LINE = Box((-np.inf,), (np.inf,), (1,))
HYPERPARAMETERS = {"rate": Limits(0.1, 0, 1, "step size")}


def wander():
    """Draws its rewards; an episode ends or is cut at random. Observations count steps in it."""

    def reset(key):
        return jnp.zeros(1), jnp.zeros(1)

    def step(key, state, action):
        reward, chance = jax.random.uniform(key, (2,))
        final = state + 1
        terminated, truncated = chance < 0.1, chance > 0.8
        after = jnp.where(terminated | truncated, jnp.zeros(1), final)
        return after, after, reward, terminated, truncated, {"final_observation": final}

    return Environment("wander", LINE, LINE, reset, step)


@dataclasses.dataclass(frozen=True)
class LineState:
    """State of `line_agent`; a pytree."""

    weight: Array  # [] float32, value of a step of an episode
    version: Array  # [] float32, updates so far
    hyper: dict  # [] float32 each


jax.tree_util.register_dataclass(LineState, ["weight", "version", "hyper"], [])


def line_agent(needs_next_action=False):
    """Its action is the number of updates that its policy has seen, plus noise if it explores.

    What it remembers, leaves [E], is how many actions it has taken in the episode.
    """

    def init(key, **given):
        hyper = resolve(HYPERPARAMETERS, given)
        return LineState(jax.random.uniform(key), jnp.float32(0), hyper)

    def act(policy, memory, observation, key, step, explore=True):
        noise = jax.random.uniform(key, observation.shape, maxval=0.25) if explore else 0.0
        return jnp.broadcast_to(policy, observation.shape) + noise, memory + 1

    def td_error(critics, batch, key):
        del key
        ahead = critics * batch.next_observation[:, 0]
        return batch.reward + batch.discount * ahead - critics * batch.observation[:, 0]

    def learn(state, batch, weights, key):
        error = td_error(state.weight, batch, key)
        noise = 1 + 0.01 * jax.random.uniform(key)
        weight = state.weight + 0.01 * noise * state.hyper["rate"] * jnp.mean(weights * error)
        new = dataclasses.replace(state, weight=weight, version=state.version + 1)
        return new, Learned(error, {"loss": jnp.mean(error**2), "weight": state.weight})

    return Agent(
        init=init,
        policy=lambda state: state.version,
        act=act,
        learn=learn,
        td_error=td_error,
        critics=lambda state: state.weight,
        memory=lambda num_envs: jnp.zeros(num_envs, jnp.int32),
        observation_space=LINE,
        action_space=LINE,
        hyperparameters=HYPERPARAMETERS,
        needs_next_action=needs_next_action,
    )


def line_program(
    sampler="uniform", capacity=4096, batch_size=8, n_step=1, needs_next_action=False, **schedule
):
    """A program of both; its memory holds all that the tests collect."""
    schedule = {"num_envs": 2, "learning_starts": 32, **schedule}
    env, agent = wander(), line_agent(needs_next_action)
    memory = replay.make(
        train.example(env, agent),
        capacity,
        batch_size,
        sampler,
        num_envs=schedule["num_envs"],
        n_step=n_step,
    )
    return train.make(env, agent, memory, **schedule)


def collected(program, state):
    """Everything that was collected, in time, leaves [T, E, ...], from a memory not yet full."""
    rows = int(state.replay.store.cursor.row)
    assert int(state.replay.store.cursor.laps) == 0
    envs = program.schedule.num_envs
    return jax.tree.map(
        lambda leaf: np.asarray(leaf).reshape(-1, envs, *leaf.shape[1:])[:rows],
        state.replay.store.data,
    )


def close(tree, other, rtol=2e-5, atol=1e-6):
    """Integers and bools are equal, floats but for rounding."""
    assert jax.tree.structure(tree) == jax.tree.structure(other)
    for (path, a), b in zip(
        jax.tree_util.tree_leaves_with_path(tree), jax.tree.leaves(other), strict=True
    ):
        name = jax.tree_util.keystr(path)
        assert (jnp.shape(a), a.dtype) == (jnp.shape(b), b.dtype), name
        if a.dtype == np.float32:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=name)
        else:
            np.testing.assert_array_equal(a, b, err_msg=name)


def equal(tree, other):
    """Every array has the same bits."""
    for (path, a), b in zip(
        jax.tree_util.tree_leaves_with_path(tree), jax.tree.leaves(other), strict=True
    ):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), jax.tree_util.keystr(path)
