"""Draws from single words: evenly spread words must give evenly spread results.

Words on a regular grid leave nothing to chance: an interval that holds a fraction p of the words
holds p N of N grid points give or take one, so these tests have no false alarms.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl import envs
from accel_rl.envs import dynamics
from accel_rl.types import MDP

step = jax.jit(dynamics.step)
reset = jax.jit(dynamics.reset)
choose = jax.jit(dynamics.choose, static_argnums=1)
EDGE_WORDS = jnp.asarray([0, 1, 2**31, 2**32 - 2, 2**32 - 1], jnp.uint32)


def grid(count):
    spacing = 2**32 // count
    return jnp.asarray(np.arange(count, dtype=np.uint64) * spacing + spacing // 2, jnp.uint32)


def one_state(probability, initial=None):
    """An MDP whose outcome k of (0, a) leads to state k, for exact probabilities [A, K]."""
    probability = np.asarray(probability, np.float32)
    count = probability.shape[-1]
    table = np.broadcast_to(probability, (count, *probability.shape))
    outcome = np.broadcast_to(np.arange(count), table.shape)
    initial = np.eye(count)[0] if initial is None else np.asarray(initial)
    return MDP(
        probability=jnp.asarray(table),
        next_state=jnp.asarray(outcome, jnp.int32),
        reward=jnp.asarray(10.0 * outcome, jnp.float32),
        terminated=jnp.asarray(outcome == 2),
        initial=jnp.asarray(initial, jnp.float32),
    )


def check_even(words, slack):
    """The words split the range of words evenly: the i-th of n lies near (i + 1/2) / n."""
    count = len(words)
    found = np.sort(words.astype(np.float64)) / 2**32
    np.testing.assert_allclose(found, (np.arange(count) + 0.5) / count, atol=slack / count)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 300, 65536, 70001, 2**31])
def test_choose_is_the_64_bit_product(n):
    words = np.random.default_rng(0).integers(0, 2**32, 1000, np.uint64)
    words = np.concatenate([words, np.asarray(EDGE_WORDS, np.uint64)])
    index, rest = choose(jnp.asarray(words, jnp.uint32), n)
    assert index.dtype == jnp.int32
    assert rest.dtype == jnp.uint32
    np.testing.assert_array_equal(index, words * n >> 32)
    np.testing.assert_array_equal(rest, words * n & 0xFFFFFFFF)


@pytest.mark.parametrize("n", [0, -1, 2**31 + 1])
def test_choose_refuses(n):
    with pytest.raises(ValueError, match=f"n must be from 1 to .* got {n}"):
        dynamics.choose(EDGE_WORDS, n)


@pytest.mark.parametrize(
    "probability",
    [[1 / 3, 1 / 3, 1 / 3], [0.8, 0.1, 0.1], [0, 1, 0], [0.5, 0, 0.5], [0, 0.25, 0.75], [1, 0, 0]],
)
def test_outcomes_and_leftovers_are_even(probability):
    words = grid(2**16)
    zero = jnp.zeros(words.shape, jnp.int32)
    sampler = dynamics.make_sampler(one_state([probability]))
    next_state, reward, terminated, rest = map(np.asarray, step(sampler, zero, zero, words))
    np.testing.assert_array_equal(reward, 10.0 * next_state)
    np.testing.assert_array_equal(terminated, next_state == 2)
    assert (next_state.dtype, reward.dtype, rest.dtype) == (np.int32, np.float32, np.uint32)
    counts = np.bincount(next_state, minlength=3)
    assert (counts[np.equal(probability, 0)] == 0).all()
    assert np.abs(counts - 2**16 * np.array(probability)).max() <= 1
    for outcome in np.flatnonzero(counts):
        check_even(rest[next_state == outcome], slack=1)


@pytest.mark.parametrize("success_rate", [0.0, 1 / 3, 1.0])
def test_extreme_words_give_possible_outcomes(success_rate):
    mdp = envs.frozen_lake(success_rate=success_rate)
    sampler = dynamics.make_sampler(mdp)
    state, action, word = (
        jnp.asarray(each.ravel())
        for each in np.meshgrid(np.arange(16), np.arange(4), np.asarray(EDGE_WORDS))
    )
    next_state, _, _, _ = step(sampler, state, action, word)
    possible = np.asarray(mdp.next_state)[state, action] == np.asarray(next_state)[:, None]
    assert (possible & (np.asarray(mdp.probability)[state, action] > 0)).any(axis=1).all()


def test_one_word_pays_for_action_outcome_and_first_state():
    sampler = envs.make_sampler(envs.taxi())
    words = grid(2**18)
    action, rest = choose(words, 6)
    state = jnp.full(words.shape, 328, jnp.int32)
    next_state, _, _, rest = step(sampler, state, action, rest)
    start, _ = reset(sampler, rest)
    np.testing.assert_array_equal(next_state, envs.taxi().next_state[328, action, 0])
    joint = np.zeros((6, 500))
    np.add.at(joint, (np.asarray(action), np.asarray(start)), 1)
    expected = 2**18 / 6 * np.asarray(envs.taxi().initial)
    assert np.abs(joint - expected).max() <= 1.01  # 1, and what float32 makes of 1/300


def test_unequal_first_states():
    weights = [0.2, 0.0, 0.5, 0.3]
    sampler = dynamics.make_sampler(one_state([[1, 0, 0, 0]], weights))
    state, rest = map(np.asarray, reset(sampler, grid(2**16)))
    counts = np.bincount(state, minlength=4)
    assert counts[1] == 0
    assert np.abs(counts - 2**16 * np.array(weights)).max() <= 1
    for first in (0, 2, 3):
        check_even(rest[state == first], slack=1)


def test_samplers_stack_and_map():
    rates = (0.0, 0.5, 1.0)
    samplers = [envs.make_sampler(envs.frozen_lake(success_rate=rate)) for rate in rates]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *samplers)
    words = grid(64)
    state, action = jnp.full(64, 14, jnp.int32), jnp.full(64, 2, jnp.int32)
    every = jax.jit(jax.vmap(dynamics.step, in_axes=(0, None, None, None)))
    mapped = every(stacked, state, action, words)
    for row, sampler in enumerate(samplers):
        alone = step(sampler, state, action, words)
        jax.tree.map(lambda m, a, row=row: np.testing.assert_array_equal(m[row], a), mapped, alone)


@pytest.mark.parametrize(
    ("probability", "initial", "message"),
    [
        ([[0.5, 0.4, 0.0]], None, r"sum of probability\[0, 0\] must be 1, got 0.9"),
        ([[1.5, -0.5, 0.0]], None, r"probability\[0, 0, 1\] must be a probability, got -0.5"),
        ([[1.0, 0.0, float("nan")]], None, r"probability\[0, 0, 2\] must be .* got nan"),
        ([[1.0, 0.0, 0.0]], [0.5, 0.0, 0.0], r"sum of initial\[\] must be 1, got 0.5"),
    ],
)
def test_tables_that_are_no_probabilities(probability, initial, message):
    with pytest.raises(ValueError, match=message):
        dynamics.make_sampler(one_state(probability, initial))


def two_actions(**changes):
    """Three states, two actions, three outcomes; with other fields."""
    mdp = one_state([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    tables = {name: np.array(getattr(mdp, name)) for name in ("next_state", "reward")}
    return dataclasses.replace(mdp, **{**tables, **changes})


def changed(name, value):
    """The table of that name, with another value in one place."""
    table = getattr(two_actions(), name)
    table[2, 1, 0] = value
    return {name: table}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (changed("next_state", 3), r"next_state\[2, 1, 0\] must be in \[0, 3\), got 3"),
        (changed("next_state", -1), r"next_state\[2, 1, 0\] must be in \[0, 3\), got -1"),
        (changed("reward", np.nan), r"reward\[2, 1, 0\] must be finite, got nan"),
        (changed("reward", -np.inf), r"reward\[2, 1, 0\] must be finite, got -inf"),
        ({"next_state": np.zeros((3, 2, 1), int)}, r"must have one shape \[S, A, K\]"),
        ({"reward": np.zeros((3, 2))}, r"must have one shape .* got .*\(3, 2\),"),
        ({"terminated": np.zeros((3, 1, 3), bool)}, r"must have one shape"),
        ({"initial": np.eye(4)[0]}, r"initial \[S\], none of them 0, got .* \(4,\)\]"),
        ({"probability": np.ones((3, 2))}, r"must have one shape \[S, A, K\]"),
        ({"probability": np.ones((0, 2, 3))}, r"none of them 0, got \[\(0, 2, 3\)"),
    ],
)
def test_tables_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        dynamics.make_sampler(two_actions(**changes))


def test_results_of_one_action_may_be_no_states():
    """A policy of many actions over few states is such a table."""
    mdp = one_state([[1.0, 0.0, 0.0]])
    actions = dataclasses.replace(mdp, next_state=mdp.next_state + 5)
    sampler = dynamics.make_sampler(actions)
    zero = jnp.zeros(5, jnp.int32)
    assert step(sampler, zero, zero, EDGE_WORDS)[0].tolist() == [5] * 5
    with pytest.raises(ValueError, match=r"next_state\[0, 0, 0\] must be in \[0, 3\), got 5"):
        envs.TabularEnv(actions)
    with pytest.raises(ValueError, match="got -1"):
        dynamics.make_sampler(dataclasses.replace(mdp, next_state=mdp.next_state - 1))


@pytest.mark.parametrize(
    ("limit", "error"), [(0, ValueError), (2**31, ValueError), (2.5, TypeError)]
)
def test_a_table_s_time_limit(limit, error):
    with pytest.raises(error, match=f"time_limit must be .*got {limit}"):
        envs.TabularEnv(two_actions(time_limit=limit))
