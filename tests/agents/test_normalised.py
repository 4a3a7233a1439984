"""Normalised observations: statistics against NumPy over all that was seen, and who reads them."""

import dataclasses

import continuous
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl import agents
from accel_rl.agents.normalised import Statistics
from accel_rl.types import Batch, Box, Discrete

KEY = jax.random.key(0)
CENTER, SCALE = np.float32([1e3, 0, -50]), np.float32([20, 1e-2, 4])


def scaled(seed):
    """A batch whose observations lie around `CENTER`."""
    batch = continuous.batch(seed)
    return dataclasses.replace(
        batch,
        observation=batch.observation * SCALE + CENTER,
        next_observation=batch.next_observation * SCALE + CENTER,
    )


@pytest.fixture(scope="module")
def seen():
    """An agent after three batches of which some items are left out, and those batches."""
    agent = agents.ddpg(continuous.OBSERVATIONS, continuous.ACTIONS, **continuous.NET)
    wrapped = agents.normalise_observations(agent, clip=2.0)
    batches = jax.tree.map(lambda *leaves: np.stack(leaves), *(scaled(n) for n in range(3)))
    weights = np.stack([continuous.weights(seed) for seed in range(3)])
    weights[:, :4] = 0

    @jax.jit
    def run(batches, weights):
        def step(state, inputs):
            return wrapped.learn(state, *inputs, KEY)[0], None

        state = wrapped.init(KEY, random_steps=0)
        state, _ = jax.lax.scan(step, state, (batches, weights))
        batch = jax.tree.map(lambda leaf: leaf[0], batches)
        after, learned = wrapped.learn(state, batch, weights[0], KEY)
        mean, variance = state.statistics.mean, state.statistics.variance

        def by_hand(x):
            return jnp.clip((x - mean) / jnp.sqrt(variance), -2, 2)

        plain = dataclasses.replace(
            batch,
            observation=by_hand(batch.observation),
            next_observation=by_hand(batch.next_observation),
        )
        policies = wrapped.policy(state), agent.policy(state.inner)
        return {
            "state": state,
            "learned": (after.inner, learned),
            "learned_by_hand": agent.learn(state.inner, plain, weights[0], KEY),
            "td_error": wrapped.td_error(wrapped.critics(state), batch, KEY),
            "action": wrapped.act(policies[0], (), batch.observation, KEY, 0)[0],
            "action_by_hand": agent.act(policies[1], (), plain.observation, KEY, 0)[0],
        }

    return run(batches, weights), batches, weights


@pytest.mark.long  # compiles learning three times
def test_statistics_are_numpys_of_all_that_counts(seen):
    found, batches, weights = seen
    everything = batches.observation[weights > 0].astype(np.float64)
    statistics = found["state"].statistics
    assert statistics.count == len(everything)
    np.testing.assert_allclose(statistics.mean, everything.mean(axis=0), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(statistics.variance, everything.var(axis=0), rtol=1e-4)


@pytest.mark.long  # compiles learning three times
def test_learning_acting_and_errors_read_normalised_observations(seen):
    found, *_ = seen
    for name in ("learned", "action"):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4),
            found[name],
            found[f"{name}_by_hand"],
        )
    error = found["learned"][1].td_error
    np.testing.assert_allclose(found["td_error"], error, rtol=1e-4, atol=1e-5)


def test_many_batches_are_as_one():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(400, 32, 2, 2)) * 3 + 100).astype(np.float32)
    included = rng.random((400, 32)) < 0.3
    included[7] = False  # a batch of which nothing counts

    @jax.jit
    def run(x, included):
        def step(statistics, inputs):
            return statistics.include(*inputs), None

        return jax.lax.scan(step, Statistics.start((2, 2)), (x, included))[0]

    found, want = run(x, included), x[included].astype(np.float64)
    assert found.count == int(included.sum())
    np.testing.assert_allclose(found.mean, want.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(found.variance, want.var(axis=0), rtol=1e-4)


def test_any_agent_of_a_box_is_wrapped_and_swept():
    agent = agents.normalise_observations(
        agents.dqn(continuous.OBSERVATIONS, Discrete(2), hidden=(4,))
    )
    batch = continuous.batch()
    batch = dataclasses.replace(batch, action=jnp.zeros(continuous.ITEMS, jnp.int32))

    @jax.jit
    def run(rates):
        def one(rate):
            state = agent.init(KEY, learning_rate=rate)
            return agent.learn(state, batch, continuous.weights(), KEY)[0]

        return jax.vmap(one)(rates)

    state = run(jnp.asarray([1e-3, 1e-2]))
    assert state.statistics.mean.shape == (2, 3)
    assert agent.hyperparameters["learning_rate"].default > 0
    kernels = jax.tree.leaves(state.inner.params)
    assert any((kernel[0] != kernel[1]).any() for kernel in kernels)


def test_scaled_observations_are_learned():
    """Two states at 1,000 and 1,001, worth 0 and 1: not to be told apart as they are."""
    box = Box((0.0,), (2e3,), (1,))
    agent = agents.normalise_observations(agents.dqn(box, Discrete(2), hidden=(16,)))
    observation = jnp.asarray([[1000.0], [1001.0]])
    value = jnp.asarray([0.0, 1.0])
    batch = Batch(observation, jnp.zeros(2, jnp.int32), value, jnp.zeros(2), observation)

    @jax.jit
    def run(key):
        def step(state, key):
            state, learned = agent.learn(state, batch, jnp.ones(2), key)
            return state, learned.td_error

        state = agent.init(key, learning_rate=0.01)
        return jax.lax.scan(step, state, jax.random.split(key, 300))[1]

    np.testing.assert_allclose(run(KEY)[-1], 0, atol=0.02)


def test_what_cannot_be_normalised_is_refused():
    discrete = agents.dqn(Discrete(4), Discrete(2))
    with pytest.raises(TypeError, match=r"needs a Box observation space, got Discrete\(n=4\)"):
        agents.normalise_observations(discrete)
    box = agents.dqn(continuous.OBSERVATIONS, Discrete(2))
    for clip in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="clip must be above 0"):
            agents.normalise_observations(box, clip)
