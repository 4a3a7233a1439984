"""The probes are what they say, every agent learns them, and what is broken does not."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import probes
import pytest
import quick
from agent_conformance import CASES, QUICK
from probe_training import DEFECTS, failures, learn_probes


def outcomes(number, continuous, box):
    """Reward, discount and next state of each state and action, by stepping; in NumPy."""
    env = probes.probe(number, continuous=continuous, box=box)
    step = jax.jit(env.step)
    actions = np.float32([[-1], [0], [1], [2], [3]]) if continuous else np.int32([0, 1])
    shape = 2, len(actions)
    reward, discount, following = np.zeros(shape), np.zeros(shape), np.zeros(shape, int)
    for state, (choice, action) in itertools.product((0, 1), enumerate(actions)):
        key = jax.random.key(state + 2 * choice)
        observation, after, gained, terminated, truncated, info = step(key, state, action)
        final = int(np.asarray(info["final_observation"]).reshape(()) > 0)
        reward[state, choice], discount[state, choice] = gained, not terminated
        following[state, choice] = final
        assert not (terminated and truncated)
        if not (terminated or truncated):
            assert int(after) == final
        np.testing.assert_array_equal(observation, probes.observe(after, box))
    return actions, reward, discount, following


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("number", range(6), ids=probes.NAMES)
def test_values_by_value_iteration(number, continuous):
    actions, reward, discount, following = outcomes(number, continuous, box=continuous)
    values = np.zeros(2)
    for _ in range(60):
        action_values = reward + probes.GAMMA * discount * values[following]
        values = action_values.max(axis=1)
    visited = probes.VISITED[number]
    np.testing.assert_allclose(values[visited], probes.VALUES[number][visited], rtol=1e-6)
    matters = np.ptp(action_values, axis=1) > 0
    np.testing.assert_array_equal((matters & visited), probes.MATTERS[number])
    best = np.asarray(probes.best_action(jnp.arange(2), continuous)).reshape(2)
    for state in np.flatnonzero(probes.MATTERS[number]):
        assert actions.reshape(-1)[action_values[state].argmax()] == best[state]


@pytest.mark.parametrize("number", range(6), ids=probes.NAMES)
def test_states_are_visited(number):
    env = probes.probe(number, box=False)
    starts, _ = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 64))
    _, _, _, following = outcomes(number, continuous=False, box=False)
    seen = set(np.asarray(starts).tolist())
    seen |= {int(state) for start in seen for state in following[start]}
    assert seen == set(np.flatnonzero(probes.VISITED[number]).tolist())


every_agent = pytest.mark.parametrize("name", quick.only(QUICK, CASES, others="long"))


@functools.cache
def learned(name):
    """Values and actions of an agent, of each defect and probe."""
    return [np.asarray(each) for each in learn_probes(CASES[name])]


@every_agent
def test_learns_the_probes(name):
    values, actions = learned(name)
    assert failures(CASES[name], values[0], actions[0]) == set(), values[0]


@every_agent
def test_probes_find_what_is_broken(name):
    for number, (defect, probes_that_fail) in enumerate(DEFECTS.items()):
        values, actions = (each[number] for each in learned(name))
        assert failures(CASES[name], values, actions) == probes_that_fail, defect
