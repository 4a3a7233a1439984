"""DDPG: a step of learning against NumPy, convergence to closed forms, exploration."""

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
RATES = ("actor_learning_rate", "critic_learning_rate")


def act_of(params, observation):
    return np.tanh(continuous.layers(params, observation, "action"))


@pytest.fixture(scope="module")
def steps():
    """A state, the next along plain gradients, and what was learned."""
    agent = agents.ddpg(*SPACES, **continuous.NET, optimiser=optax.identity())

    @jax.jit
    def run(batch, weights):
        slow = {**dict.fromkeys(RATES, 0.1), "tau": 0.3}
        state = continuous.after_two_steps(agent, agent.init(KEY, **slow), batch, weights)
        hyper = {**state.hyper, **{name: jnp.float32(1) for name in RATES}}
        before = dataclasses.replace(state, hyper=hyper)
        after, learned = agent.learn(before, batch, weights, KEY)
        return before, after, learned, agent.td_error(agent.critics(before), batch, KEY)

    return run(continuous.batch(), continuous.weights())


def test_td_errors_are_numpys(steps):
    before, _, learned, error = steps
    batch = continuous.double(continuous.batch())
    old = continuous.double(before)
    following = act_of(old.actor_target, batch.next_observation)
    next_value = continuous.critics(old.critics_target, batch.next_observation, following)[:, 0]
    action = continuous.unit(batch.action)
    value = continuous.critics(old.critics, batch.observation, action)[:, 0]
    want = batch.reward + batch.discount * next_value - value
    np.testing.assert_allclose(learned.td_error, want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(error, want, rtol=1e-4, atol=1e-5)
    weights = continuous.double(continuous.weights())
    np.testing.assert_allclose(learned.metrics["loss"], np.mean(weights * want**2) / 2, rtol=1e-4)
    np.testing.assert_allclose(learned.metrics["value"], np.mean(value), rtol=1e-4)


def test_the_critic_descends_numpys_slope(steps):
    before, after, learned, _ = steps
    batch, weights = continuous.double(continuous.batch()), continuous.double(continuous.weights())
    old, new = continuous.double(before), continuous.double(after)
    action = continuous.unit(batch.action)
    target = np.asarray(learned.td_error, np.float64)
    target = target + continuous.critics(old.critics, batch.observation, action)[:, 0]

    def loss(params):
        value = continuous.critics(params, batch.observation, action)[:, 0]
        return np.mean(weights * (target - value) ** 2 / 2)

    direction, slope = continuous.slope(loss, old.critics)
    assert continuous.along(direction, old.critics, new.critics) == pytest.approx(slope, rel=1e-3)


def test_the_policy_climbs_the_critic_along_numpys_slope(steps):
    before, after, learned, _ = steps
    batch, included = continuous.double(continuous.batch()), np.asarray(continuous.weights()) > 0
    old, new = continuous.double(before), continuous.double(after)

    def loss(params):
        action = act_of(params, batch.observation)
        return -np.mean(included * continuous.critics(new.critics, batch.observation, action)[:, 0])

    direction, slope = continuous.slope(loss, old.actor)
    assert continuous.along(direction, old.actor, new.actor) == pytest.approx(slope, rel=1e-3)
    np.testing.assert_allclose(learned.metrics["actor_loss"], loss(old.actor), rtol=1e-4)


def test_targets_follow_by_a_share(steps):
    before, after, *_ = steps
    old, new = continuous.double(before), continuous.double(after)
    for name in ("actor", "critics"):
        want = jax.tree.map(
            lambda target, online: 0.7 * target + 0.3 * online,
            getattr(old, f"{name}_target"),
            getattr(new, name),
        )
        got = getattr(new, f"{name}_target")
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), got, want)


@pytest.mark.long  # trains
def test_values_and_actions_converge_to_closed_forms():
    """One state, reward 1 - (a - 0.5)^2 for a in [-1, 3]: the best action is 0.5, worth 1 / 0.2."""
    space = Box((-1.0,), (3.0,), (1,))
    agent = agents.ddpg(continuous.OBSERVATIONS, space, hidden=(32, 32))
    zeros = jnp.zeros((64, 3))
    hyper = {"actor_learning_rate": 0.003, "critic_learning_rate": 0.01, "tau": 0.1}

    @jax.jit
    def run(key):
        def step(state, key):
            action = jax.random.uniform(key, (64, 1), minval=-1, maxval=3)
            reward = 1 - jnp.square(action[:, 0] - 0.5)
            batch = Batch(zeros, action, reward, jnp.full(64, 0.8), zeros)
            return agent.learn(state, batch, jnp.ones(64), key)[0], None

        state, _ = jax.lax.scan(step, agent.init(key, **hyper), jax.random.split(key, 2000))
        best, _ = agent.act(agent.policy(state), (), zeros[:1], key, 0, explore=False)
        end = Batch(zeros[:1], best, jnp.zeros(1), jnp.zeros(1), zeros[:1])
        return best, -agent.td_error(agent.critics(state), end, key)

    best, value = run(KEY)
    np.testing.assert_allclose(best, [[0.5]], atol=0.08)
    np.testing.assert_allclose(value, [5], atol=0.1)


def test_actions_are_uniform_at_first_then_the_policys_with_noise():
    agent = agents.ddpg(*SPACES, **continuous.NET)
    envs = 4096
    observation = jnp.broadcast_to(jnp.arange(3.0), (envs, 3))

    @jax.jit
    def run(key):
        policy = agent.policy(agent.init(key, random_steps=100, noise_scale=0.05))
        steps = jnp.asarray([99, 100], jnp.int32)
        tried = [agent.act(policy, (), observation, key, step)[0] for step in steps]
        return *tried, agent.act(policy, (), observation[:1], key, 0, explore=False)[0]

    first, later, best = (np.asarray(each, np.float64) for each in run(KEY))
    low, high = np.asarray(continuous.ACTIONS.low), np.asarray(continuous.ACTIONS.high)
    alarm = 1e-6  # false alarms of each test
    for column in range(2):
        uniform = stats.uniform(low[column], high[column] - low[column])
        assert stats.kstest(first[:, column], uniform.cdf).pvalue > alarm
        around = stats.norm(best[0, column], 0.05 * (high - low)[column] / 2)
        assert stats.kstest(later[:, column], around.cdf).pvalue > alarm


@pytest.mark.long  # compiles two agents
def test_hyperparameters_are_swept_by_vmap():
    agent = agents.ddpg(*SPACES, **continuous.NET, noise="ornstein_uhlenbeck")
    rates, taus = jnp.asarray([1e-3, 1e-2, 0.1]), jnp.asarray([0.01, 0.5, 1.0])
    batch, weights = continuous.batch(), continuous.weights()

    @jax.jit
    def run(rate, tau):
        def one(rate, tau):
            state = agent.init(KEY, critic_learning_rate=rate, tau=tau)
            return continuous.after_two_steps(agent, state, batch, weights)

        return jax.vmap(one)(rate, tau), one(rate[1], tau[1])

    swept, single = run(rates, taus)
    each = jax.tree.map(lambda leaf: leaf[1], swept)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), each, single)
    bias = swept.critics["params"]["value"]["bias"]
    assert len(np.unique(bias)) == 3
    np.testing.assert_array_equal(swept.critics_target["params"]["value"]["bias"][2], bias[2])


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="noise must be one of gaussian, ornstein_uhlenbeck"):
        agents.ddpg(*SPACES, noise="pink")
    with pytest.raises(ValueError, match="loss must be one of"):
        agents.ddpg(*SPACES, loss="cubic")


@pytest.mark.long
def test_pendulum_is_learned():
    assert (pendulum.returns(agents.ddpg) > -200).all()
