"""Exploration by noise: distributions, at a false-alarm rate of 1e-6 for each assertion."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from accel_rl import agents
from accel_rl.agents.continuous import gaussian, ornstein_uhlenbeck, uniform_at_first
from accel_rl.train import collection
from accel_rl.types import Box, Environment

ALARM = 1e-6
ENVS = 8192
THETA, SIGMA, DT = 0.15, 0.3, 1.0
LAG = 5


def assert_variance(samples, variance):
    """Samples, independent normal with mean 0, have the variance."""
    size = samples.size
    ratio = np.sum(np.square(samples, dtype=np.float64)) / variance
    low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], size)
    assert low < ratio < high


def assert_correlation(a, b, correlation):
    """Pairs, independent and normal, have the correlation (by Fisher's transformation)."""
    found = np.corrcoef(a, b)[0, 1]
    apart = (np.arctanh(found) - np.arctanh(correlation)) * np.sqrt(a.size - 3)
    assert abs(apart) < stats.norm.isf(ALARM / 2)


@pytest.fixture(scope="module")
def drifts():
    """Noise of ENVS environments after steps 1, 2, ...: [120, ENVS]."""
    process = ornstein_uhlenbeck()

    @jax.jit
    def run(key, theta, sigma, dt):
        hyper = {"ou_theta": theta, "ou_sigma": sigma, "ou_dt": dt}

        def step(memory, key):
            drawn, memory = process.draw(hyper, memory, key, (ENVS, 1))
            return memory, drawn[:, 0]

        return jax.lax.scan(step, process.memory(ENVS, 1), jax.random.split(key, 120))[1]

    return lambda theta=THETA, sigma=SIGMA, dt=DT: np.asarray(
        run(jax.random.key(0), *(jnp.float32(x) for x in (theta, sigma, dt)))
    )


def test_drift_has_the_variance_of_its_time(drifts):
    paths = drifts()
    for step in (1, 3, 120):
        time = step * DT
        variance = SIGMA**2 / (2 * THETA) * (1 - np.exp(-2 * THETA * time))
        assert_variance(paths[step - 1], variance)


def test_drift_forgets_exponentially(drifts):
    paths = drifts()
    assert_correlation(paths[-1 - LAG], paths[-1], np.exp(-THETA * LAG * DT))


def test_shorter_steps_drift_as_far(drifts):
    # 120 steps of 0.01 are as one of 1.2, and even steps that forget nearly all are stable.
    assert_variance(drifts(dt=0.01)[-1], SIGMA**2 / (2 * THETA) * (1 - np.exp(-2 * THETA * 1.2)))
    assert_variance(drifts(theta=30.0, dt=1.0)[-1], SIGMA**2 / 60)


def test_gaussian_noise_has_its_scale_and_no_memory():
    process = gaussian()
    keys = jax.random.split(jax.random.key(1))
    hyper = {"noise_scale": jnp.float32(0.4)}
    first, second = (process.draw(hyper, (), key, (ENVS, 1))[0] for key in keys)
    assert process.memory(ENVS, 1) == ()
    assert_variance(np.asarray(first), 0.4**2)
    assert_correlation(np.asarray(first)[:, 0], np.asarray(second)[:, 0], 0)


def test_first_steps_are_uniform():
    action = jnp.full((ENVS, 1), 0.25, jnp.float32)
    key, steps = jax.random.key(2), jnp.float32(100)
    uniform = uniform_at_first(action, key, jnp.int32(99), steps)
    assert stats.kstest(np.asarray(uniform)[:, 0], stats.uniform(-1, 2).cdf).pvalue > ALARM
    after = uniform_at_first(action, key, jnp.int32(100), steps)
    np.testing.assert_array_equal(after, action)


@pytest.mark.parametrize("make", [agents.ddpg, agents.sac])
def test_drift_starts_anew_with_each_episode(make):
    """Environment 0's episodes never stop, environment 1's stop at each step."""
    box = Box((0.0,), (1.0,), (1,))

    def step(key, state, action):
        observation = jnp.zeros(1)
        info = {"final_observation": observation}
        return observation, state, jnp.float32(0), jnp.bool_(False), state == 1, info

    env = Environment("stops", box, box, lambda key: (jnp.zeros(1), jnp.int32(0)), step)
    agent = make(box, box, hidden=(2,), noise="ornstein_uhlenbeck")

    @jax.jit
    def run(key):
        policy = agent.policy(agent.init(key))
        state = collection.start(env, agent, 2, policy, key)
        state = dataclasses.replace(state, env=jnp.arange(2, dtype=jnp.int32))
        keys = jax.random.split(key, (1, 3))
        actor, *_ = collection.collect(env, agent, state, policy, keys, jnp.int32(0), num_envs=2)
        return actor.memory

    memory = np.asarray(run(jax.random.key(0)))
    assert memory[0] != 0
    assert memory[1] == 0


def test_noise_is_added_to_samples_of_a_policy():
    box = Box((0.0,), (1.0,), (1,))
    observation = jnp.zeros((ENVS, 1))

    @jax.jit
    def run(key):
        acted = []
        for noise in ("none", "ornstein_uhlenbeck"):
            agent = agents.sac(box, box, hidden=(2,), noise=noise)
            policy, memory = agent.policy(agent.init(key)), agent.memory(ENVS)
            acted.append(agent.act(policy, memory, observation, key, 2000))
        return acted

    (sampled, _), (noisy, drawn) = run(jax.random.key(3))
    drawn = np.asarray(drawn)[:, 0]
    # From 0 and 1 to -1 and 1; the default theta and sigma.
    expected = np.clip(2 * np.asarray(sampled)[:, 0] - 1 + drawn, -1, 1)
    np.testing.assert_allclose(2 * np.asarray(noisy)[:, 0] - 1, expected, atol=1e-6)
    assert_variance(drawn, 0.2**2 / 0.3 * (1 - np.exp(-0.3)))
    assert_correlation(np.asarray(sampled)[:, 0], drawn, 0)
