"""TD3: what it adds to DDPG, against NumPy: two critics, smoothed targets, delayed policies."""

import continuous
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pendulum
import pytest

from accel_rl import agents
from accel_rl.types import Batch

SPACES = (continuous.OBSERVATIONS, continuous.ACTIONS)
KEY = jax.random.key(0)
DELAYS = (1, 2, 3)


def agent_of(**options):
    return agents.td3(*SPACES, **continuous.NET, **options)


def learned_six_times(agent, batch, weights, **hyper):
    state = agent.init(KEY, **hyper)

    def step(state, key):
        state, learned = agent.learn(state, batch, weights, key)
        return state, (state.actor, state.actor_target, state.critics_target, learned.metrics)

    return jax.lax.scan(step, state, jax.random.split(KEY, 6))


@pytest.fixture(scope="module")
def delayed():
    """Six updates with each of `DELAYS`, by `vmap` and by themselves: final states, histories."""
    agent = agent_of()

    @jax.jit
    def run(batch, weights, delays):
        def one(delay):
            return learned_six_times(agent, batch, weights, policy_delay=delay)

        return jax.vmap(one)(delays), one(delays[1])

    return run(continuous.batch(), continuous.weights(), jnp.asarray(DELAYS, jnp.float32))


@pytest.mark.long  # compiles two agents
def test_policy_and_targets_move_in_one_of_so_many_updates(delayed):
    (_, history), _ = delayed
    for row, delay in enumerate(DELAYS):
        for tree in history[:3]:  # the policy, its target, the critics'
            bias = np.asarray(jax.tree.leaves(tree)[0][row])
            moved = (bias[1:] != bias[:-1]).reshape(5, -1).any(axis=1)
            np.testing.assert_array_equal(moved, [n % delay == 0 for n in range(2, 7)])


@pytest.mark.long  # compiles two agents
def test_the_policy_delay_is_swept_by_vmap(delayed):
    (swept, _), (single, _) = delayed
    each = jax.tree.map(lambda leaf: leaf[1], swept)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), each, single)
    np.testing.assert_array_equal(swept.actor_optimiser.steps, [6, 3, 2])


@pytest.mark.long  # compiles two agents
def test_the_actor_loss_is_that_of_its_last_step(delayed):
    (_, history), _ = delayed
    loss = np.asarray(history[3]["actor_loss"])[1]  # a delay of 2
    assert loss[0] == 0
    np.testing.assert_array_equal(loss[1::2][:2], loss[2::2])
    assert loss[1] != loss[3]


@pytest.fixture(scope="module")
def sharp():
    """Without noise on targets, and with: a state whose targets lag, TD errors of many keys."""
    agent = agent_of(optimiser=optax.identity())

    @jax.jit
    def run(batch, weights):
        hyper = {"actor_learning_rate": 0.1, "critic_learning_rate": 0.1, "policy_delay": 1}

        def one(noise):
            state, _ = learned_six_times(agent, batch, weights, target_noise=noise, **hyper)
            keys = jax.random.split(KEY, 200)
            errors = jax.vmap(agent.td_error, (None, None, 0))(agent.critics(state), batch, keys)
            return state, errors, agent.learn(state, batch, weights, keys[0])[1].td_error

        return jax.vmap(one)(jnp.asarray([0.0, 0.4]))

    return run(continuous.batch(), continuous.weights())


def test_td_errors_are_those_of_the_critic_that_errs_more(sharp):
    state, found, _ = jax.tree.map(lambda leaf: leaf[0], sharp)
    batch, state = continuous.double(continuous.batch()), continuous.double(state)
    following = np.tanh(continuous.layers(state.actor_target, batch.next_observation, "action"))
    next_values = continuous.critics(state.critics_target, batch.next_observation, following)
    action = continuous.unit(batch.action)
    values = continuous.critics(state.critics, batch.observation, action)
    errors = (batch.reward + batch.discount * next_values.min(axis=1))[:, None] - values
    worst = np.abs(errors).argmax(axis=1)
    assert len(set(worst)) == 2, "one critic errs more everywhere"
    want = errors[np.arange(len(worst)), worst]
    np.testing.assert_allclose(found[0], want, rtol=1e-4, atol=1e-5)


def test_targets_are_smoothed_at_random_except_where_episodes_end(sharp):
    _, errors, learned = jax.tree.map(lambda leaf: leaf[1], sharp)
    np.testing.assert_allclose(learned, errors[0], rtol=1e-4, atol=1e-5)
    spread = np.ptp(errors, axis=0)
    ends = np.asarray(continuous.batch().discount) == 0
    np.testing.assert_array_equal(spread[ends], 0)
    assert (spread[~ends] > 0).all()


@pytest.mark.slow  # as DDPG's values
def test_values_converge_to_the_sum_of_a_constant_reward():
    """One state that is worth 1 / (1 - 0.8) with any action, to both critics."""
    agent = agents.td3(*SPACES, hidden=(16,))
    zeros, ones = jnp.zeros((32, 3)), jnp.ones(32)
    low, high = (np.asarray(bound, np.float32) for bound in (SPACES[1].low, SPACES[1].high))

    @jax.jit
    def run(key):
        def step(state, key):
            action = jax.random.uniform(key, (32, 2), minval=low, maxval=high)
            batch = Batch(zeros, action, ones, 0.8 * ones, zeros)
            return agent.learn(state, batch, ones, key)[0], action

        hyper = {"critic_learning_rate": 0.01, "tau": 0.1}
        state, actions = jax.lax.scan(step, agent.init(key, **hyper), jax.random.split(key, 1500))
        end = Batch(zeros, actions[0], 5 * ones, 0 * ones, zeros)
        return agent.td_error(agent.critics(state), end, key)  # of the worse critic

    np.testing.assert_allclose(run(KEY), 0, atol=0.1)


@pytest.mark.long
def test_pendulum_is_learned():
    assert (pendulum.returns(agents.td3) > -200).all()
