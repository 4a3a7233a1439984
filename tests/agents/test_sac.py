"""SAC: a step of learning against NumPy, entropy at its target, closed forms, exploration."""

import dataclasses

import continuous
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pendulum
import pytest
from scipy import stats

from accel_rl import agents
from accel_rl.types import Batch, Box

SPACES = (continuous.OBSERVATIONS, continuous.ACTIONS)
KEY = jax.random.key(0)
RATES = ("actor_learning_rate", "critic_learning_rate", "temperature_learning_rate")


def sample(params, observation, noise):
    """Actions, and the logarithms of their densities, in float64."""
    mean, log_std = np.split(continuous.layers(params, observation, "distribution"), 2, axis=1)
    number = mean + np.exp(log_std) * noise
    density = stats.norm.logpdf(number, mean, np.exp(log_std)) - np.log(1 - np.tanh(number) ** 2)
    return np.tanh(number), density.sum(axis=1)


@pytest.fixture(scope="module")
def steps():
    """A state, the next along plain gradients, what was learned, and the noise that it took."""
    agent = agents.sac(*SPACES, **continuous.NET, optimiser=optax.identity())

    @jax.jit
    def run(batch, weights):
        slow = {**dict.fromkeys(RATES, 0.05), "initial_temperature": 0.4, "tau": 0.3}
        state = continuous.after_two_steps(agent, agent.init(KEY, **slow), batch, weights)
        hyper = {**state.hyper, **{name: jnp.float32(1) for name in RATES}}
        before = dataclasses.replace(state, hyper=hyper)
        after, learned = agent.learn(before, batch, weights, KEY)
        noise = jax.random.normal(KEY, (2, continuous.ITEMS, 2))
        error = agent.td_error(agent.critics(before), batch, KEY)
        return before, after, learned, error, noise

    return run(continuous.batch(), continuous.weights())


def test_td_errors_are_numpys(steps):
    before, _, learned, error, noise = steps
    errors = errors_of(before, noise)
    worst = np.abs(errors).argmax(axis=1)
    want = errors[np.arange(len(worst)), worst]
    np.testing.assert_allclose(learned.td_error, want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(error, want, rtol=1e-4, atol=1e-5)
    weights = continuous.double(continuous.weights())
    loss = np.mean(weights * np.sum(errors**2, axis=1)) / 2
    np.testing.assert_allclose(learned.metrics["loss"], loss, rtol=1e-4)


def errors_of(state, noise, critics=None):
    """Errors [B, 2] of both critics, of which targets and policy are the state's."""
    batch, state = continuous.double(continuous.batch()), continuous.double(state)
    following, density = sample(state.actor, batch.next_observation, np.asarray(noise)[0])
    values = continuous.critics(state.critics_target, batch.next_observation, following)
    soft = values.min(axis=1) - np.exp(state.log_temperature) * density
    action = continuous.unit(batch.action)
    critics = state.critics if critics is None else critics
    value = continuous.critics(critics, batch.observation, action)
    return (batch.reward + batch.discount * soft)[:, None] - value


def test_the_critics_descend_numpys_slope(steps):
    before, after, _, _, noise = steps
    weights = continuous.double(continuous.weights())
    old, new = continuous.double(before.critics), continuous.double(after.critics)

    def loss(params):
        return np.mean(weights * np.sum(errors_of(before, noise, params) ** 2, axis=1)) / 2

    direction, slope = continuous.slope(loss, old)
    assert continuous.along(direction, old, new) == pytest.approx(slope, rel=1e-3)


def test_policy_and_temperature_descend_numpys_slopes(steps):
    before, after, learned, _, noise = steps
    batch, included = continuous.double(continuous.batch()), np.asarray(continuous.weights()) > 0
    old, new = continuous.double(before), continuous.double(after)
    temperature = np.exp(old.log_temperature)

    def loss(params):
        action, density = sample(params, batch.observation, np.asarray(noise)[1])
        value = continuous.critics(new.critics, batch.observation, action).min(axis=1)
        return np.mean(included * (temperature * density - value))

    direction, slope = continuous.slope(loss, old.actor)
    assert continuous.along(direction, old.actor, new.actor) == pytest.approx(slope, rel=1e-3)
    np.testing.assert_allclose(learned.metrics["actor_loss"], loss(old.actor), rtol=1e-4)

    _, density = sample(old.actor, batch.observation, np.asarray(noise)[1])
    slope = -temperature * np.mean(included * (density - 2))  # the target is -2: two components
    np.testing.assert_allclose(old.log_temperature - new.log_temperature, slope, rtol=1e-4)
    np.testing.assert_allclose(learned.metrics["entropy"], -density.mean(), rtol=1e-4)
    np.testing.assert_allclose(learned.metrics["temperature"], temperature, rtol=1e-5)


def test_targets_follow_by_a_share(steps):
    before, after, *_ = steps
    old, new = continuous.double(before), continuous.double(after)
    want = jax.tree.map(lambda a, b: 0.7 * a + 0.3 * b, old.critics_target, new.critics)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), new.critics_target, want)


@pytest.fixture(scope="module")
def bandits():
    """Agents of two temperatures, one learned, after one state with reward -(a - 0.5)^2."""
    space = Box((-1.0,), (1.0,), (1,))
    agent = agents.sac(continuous.OBSERVATIONS, space, hidden=(16, 16))
    zeros = jnp.zeros((64, 3))

    @jax.jit
    def run(temperature, rate):
        hyper = {"actor_learning_rate": 0.003, "critic_learning_rate": 0.01, "tau": 0.1}
        hyper |= {"initial_temperature": temperature, "temperature_learning_rate": rate}

        def step(state, key):
            action = jax.random.uniform(key, (64, 1), minval=-1, maxval=1)
            reward = -jnp.square(action[:, 0] - 0.5)
            batch = Batch(zeros, action, reward, jnp.full(64, 0.8), zeros)
            state, learned = agent.learn(state, batch, jnp.ones(64), key)
            return state, learned.metrics

        keys = jax.random.split(KEY, 6000)
        state, metrics = jax.lax.scan(step, agent.init(KEY, **hyper), keys)
        best, _ = agent.act(agent.policy(state), (), zeros[:1], KEY, 0, explore=False)
        end = Batch(zeros[:1], best, jnp.zeros(1), jnp.zeros(1), zeros[:1])
        value = -agent.td_error(agent.critics(state), end, KEY)
        return best, value, jax.tree.map(lambda leaf: leaf[-1000:].mean(), metrics)

    return jax.vmap(run)(jnp.asarray([1e-6, 0.02]), jnp.asarray([0.0, 0.003]))


@pytest.mark.long  # trains
def test_without_entropy_the_best_action_is_found(bandits):
    best, value, metrics = jax.tree.map(lambda leaf: leaf[0], bandits)
    np.testing.assert_allclose(best, [[0.5]], atol=0.05)
    np.testing.assert_allclose(value, [0], atol=0.1)
    assert metrics["temperature"] == pytest.approx(1e-6)


@pytest.mark.long  # trains
def test_the_temperature_brings_entropy_to_its_target(bandits):
    best, value, metrics = jax.tree.map(lambda leaf: leaf[1], bandits)
    np.testing.assert_allclose(best, [[0.5]], atol=0.05)
    assert metrics["entropy"] == pytest.approx(-1, abs=0.05)
    # The best distribution is exp(reward / temperature), normal with a variance of half the
    # temperature; an entropy of -1 is one of log(2 pi e variance) / 2.
    variance = np.exp(-2) / (2 * np.pi * np.e)
    assert metrics["temperature"] == pytest.approx(2 * variance, rel=0.15)
    # The best action is worth its reward, 0, and reward and entropy of each later step.
    later = -variance - 2 * variance
    np.testing.assert_allclose(value, [0.8 * later / 0.2], atol=0.1)


def test_actions_are_uniform_at_first_then_of_the_squashed_distribution():
    agent = agents.sac(*SPACES, **continuous.NET)
    envs = 4096
    observation = jnp.broadcast_to(jnp.arange(3.0), (envs, 3))

    @jax.jit
    def run(key):
        state = agent.init(key, random_steps=100)
        policy = agent.policy(state)
        tried = [agent.act(policy, (), observation, key, jnp.int32(n))[0] for n in (99, 100)]
        best, _ = agent.act(policy, (), observation[:1], key, 0, explore=False)
        return *tried, best, state.actor

    *acted, params = run(KEY)
    first, later, best = (np.asarray(each, np.float64) for each in acted)
    observation = np.arange(3.0)[None]
    numbers = continuous.layers(continuous.double(params), observation, "distribution")[0]
    np.testing.assert_allclose(continuous.unit(best)[0], np.tanh(numbers[:2]), atol=1e-5)
    low, high = np.asarray(continuous.ACTIONS.low), np.asarray(continuous.ACTIONS.high)
    alarm = 1e-6  # false alarms of each test
    for column in range(2):
        uniform = stats.uniform(low[column], high[column] - low[column])
        assert stats.kstest(first[:, column], uniform.cdf).pvalue > alarm
        number = np.arctanh(continuous.unit(later)[:, column])
        normal = stats.norm(numbers[column], np.exp(numbers[2 + column]))
        assert stats.kstest(number, normal.cdf).pvalue > alarm


def test_the_target_entropy_counts_components():
    assert agents.sac(*SPACES).hyperparameters["target_entropy"].default == -2
    with pytest.raises(ValueError, match="loss must be one of"):
        agents.sac(*SPACES, loss="cubic")


@pytest.mark.long
def test_pendulum_is_learned():
    assert (pendulum.returns(agents.sac) > -200).all()
