"""A whole training beside a shadow: lists, loops and float64 follow each of its steps.

The shadow knows what the environment returned. From that alone it says what lies in the buffer,
with which probability each item is drawn, what a drawn item's target is, and what its importance
weight and its next priority are.
"""

import functools

import jax
import numpy as np
import pytest
from reference import Memory, Step, after, target

from accel_rl import agents, envs, replay, train

ITERATIONS, ENVS, CAPACITY, BATCH, STEPS, GAMMA, ALPHA = 1_250, 2, 96, 8, 3, 0.9, 0.6


@pytest.mark.long  # compiles a training, and follows it in Python
def test_a_training_follows_its_shadow():
    env = envs.environment("CartPole-v1")
    env = envs.wrappers.time_limit(env, 25)  # some episodes are cut
    agent = agents.dqn(env.observation_space, env.action_space, hidden=(8,))
    example = train.example(env, agent)
    buffer = replay.make(example, CAPACITY, BATCH, "prioritised", num_envs=ENVS, n_step=STEPS)
    program = train.make(env, agent, buffer, num_envs=ENVS, learning_starts=20)
    rates = {"learning_rate": 0.01, "epsilon_steps": 500.0, "target_period": 20}
    init = functools.partial(program.init, gamma=GAMMA, beta_steps=2_000.0)
    state = jax.jit(lambda key: init(key, agent=rates, replay={"alpha": ALPHA}))(jax.random.key(0))
    shadow = Memory(CAPACITY, ENVS, window=STEPS, alpha=ALPHA)

    @jax.jit
    def observed(state):
        """The next iteration's draw and update: pure functions, called again."""
        keys = program.keys(state.key, state.iteration)
        beta = program.beta(state.hyper, state.iteration)
        drawn = buffer.sample(state.replay, keys.sample[0], beta, state.hyper["gamma"])
        after, found = agent.learn(state.agent, drawn.batch, drawn.weights, keys.learn[0])
        return beta, drawn, after, found.td_error

    @functools.partial(jax.jit, static_argnums=1)
    def advance(state, learning):
        keys = program.keys(state.key, state.iteration)
        policy = program.agent.policy(observed(state)[2] if learning else state.agent)
        _, transitions, _ = program.collect(state.actor, policy, keys.collect, state.iteration)
        state, _ = program.iterate(state, program.zeros(state), keys, learning)
        return state, transitions

    drawn_at_all, largest = 0, 0.0
    for iteration in range(ITERATIONS):
        learning = iteration >= program.schedule.warmup
        if learning:
            beta, drawn, _, errors = jax.device_get(observed(state))
            check(shadow, beta, drawn)
            shadow.update(drawn.indices, drawn.generations, np.abs(errors.astype(np.float64)))
            drawn_at_all += BATCH
        state, rows = jax.device_get(advance(state, learning))
        shadow.add([[
            Step(
                rows.observation[n], rows.action[n], float(rows.reward[n]),
                float(rows.discount[n]), bool(rows.truncated[n]), rows.next_observation[n],
            )
            for n in range(ENVS)
        ]])  # fmt: skip
        if iteration % 50 == 49:
            largest = max(largest, compare(shadow, state))
    assert drawn_at_all > 9_000
    assert any(step.truncated for step in shadow.log[0])
    assert any(step.discount == 0 for step in shadow.log[0])
    assert 0 < largest < 1


def check(shadow, beta, drawn):
    """Each drawn item's content, probability and weight."""
    probabilities = shadow.probabilities()
    items = [shadow.item_at(int(slot)) for slot in drawn.indices]
    expected = np.array([probabilities[int(slot)] for slot in drawn.indices])
    # A priority near 0 is the difference of two values, whose rounding depends on the compilation.
    np.testing.assert_allclose(drawn.probabilities, expected, rtol=2e-3)
    weights = (len(shadow.complete()) * expected) ** -float(beta)
    np.testing.assert_allclose(drawn.weights, weights / weights.max(), rtol=2e-3)
    for row, (t, number) in enumerate(items):
        log = shadow.log[number]
        reward, discount, steps = target(log, t, STEPS, GAMMA)
        np.testing.assert_array_equal(drawn.batch.observation[row], log[t].observation)
        assert drawn.batch.action[row] == log[t].action
        np.testing.assert_allclose(drawn.batch.reward[row], reward, rtol=1e-6)
        np.testing.assert_allclose(drawn.batch.discount[row], discount, rtol=1e-6)
        last = after(log, t + steps - 1)
        np.testing.assert_array_equal(drawn.batch.next_observation[row], last)


def compare(shadow, state):
    """The largest probability of an item, and that the buffer's weights are the shadow's."""
    probabilities = shadow.probabilities()
    assert sum(probabilities.values()) == pytest.approx(1)
    assert int(state.iteration) == len(shadow.log[0])
    return max(probabilities.values())
