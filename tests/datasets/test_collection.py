"""Collection against Gymnasium's tables, arithmetic done by hand, and chi-square tests.

Each chi-square test fails with probability 1e-6 under a right implementation, and seeds are fixed.
"""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from dataset_examples import bits, countdown, gymnasium_mdp, ring

from accel_rl import datasets
from accel_rl.datasets import collect, rollout
from accel_rl.envs import dynamics

FALSE_ALARM = 1e-6


def numpy(dataset):
    table = {name: np.asarray(column) for name, column in vars(dataset.transitions).items()}
    return {
        **table,
        "episode": np.asarray(dataset.episode),
        "truncated": np.asarray(dataset.truncated),
        "start": np.asarray(dataset.episode_start),
    }


def assert_frequencies(counts, probability):
    """Chi-square over the last axis, rows tested together; impossible cells must be empty."""
    counts = np.asarray(counts, float)
    expected = np.broadcast_to(counts.sum(-1, keepdims=True) * probability, counts.shape)
    cells = expected > 0
    assert not counts[~cells].any()
    assert expected[cells].min() > 10  # so that the statistic is near its limit
    statistic = ((counts - expected)[cells] ** 2 / expected[cells]).sum()
    freedom = cells.sum() - np.prod(counts.shape[:-1])
    assert statistic <= scipy.stats.chi2.isf(FALSE_ALARM, max(freedom, 1))


def tally(shape, *columns):
    counts = np.zeros(shape)
    np.add.at(counts, columns, 1)
    return counts


@pytest.fixture(scope="module")
def lake():
    mdp = gymnasium_mdp("FrozenLake-v1", 100)
    return mdp, collect(mdp, num_transitions=200_000, seed=5, environment="FrozenLake-v1")


@pytest.mark.parametrize(
    ("num_transitions", "num_envs"),
    [
        (1, 1),
        pytest.param(60, 1, marks=pytest.mark.slow),
        (100, 7),
        pytest.param(101, 100, marks=pytest.mark.slow),
    ],
)
def test_every_number_of_rows_comes_out_valid(num_transitions, num_envs):
    data = collect(ring(4), num_transitions=num_transitions, num_envs=num_envs, seed=1)
    datasets.validate(data)
    assert len(data) == num_transitions
    t = numpy(data)
    np.testing.assert_array_equal(t["next_state"], (t["state"] + t["action"]) % 5)
    np.testing.assert_array_equal(t["reward"], t["state"] * 10 + t["action"])
    # Nothing terminates, so episodes have 4 rows, save where an environment's experience is cut.
    steps = -(-num_transitions // num_envs)
    per_env = np.split(t["truncated"], range(steps, num_transitions, steps))
    for truncated in per_env:
        expected = np.arange(1, len(truncated) + 1) % 4 == 0
        expected[-1] = True
        np.testing.assert_array_equal(truncated, expected)
    assert t["episode"][-1] + 1 == t["truncated"].sum() == t["start"].sum()


def test_no_time_limit_means_one_episode_for_each_environment():
    t = numpy(collect(ring(None), num_transitions=100, num_envs=4))
    np.testing.assert_array_equal(t["episode"], np.repeat(np.arange(4), 25))
    np.testing.assert_array_equal(np.flatnonzero(t["truncated"]), [24, 49, 74, 99])
    assert (t["discount"] == 1).all()


@pytest.mark.parametrize("limit", [None, 3, 4])
def test_termination_in_the_last_allowed_step_is_no_truncation(limit):
    t = numpy(collect(countdown(3, limit), num_transitions=9, num_envs=1))
    np.testing.assert_array_equal(t["state"], [0, 1, 2] * 3)
    np.testing.assert_array_equal(t["reward"], [0, 0, 1] * 3)
    np.testing.assert_array_equal(t["discount"], [1, 1, 0] * 3)
    np.testing.assert_array_equal(t["episode"], [0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert not t["truncated"].any()


def test_truncation_before_termination_keeps_the_discount():
    t = numpy(collect(countdown(3, 2), num_transitions=6, num_envs=1))
    np.testing.assert_array_equal(t["state"], [0, 1] * 3)
    np.testing.assert_array_equal(t["next_state"], [1, 2] * 3)
    np.testing.assert_array_equal(t["discount"], 1)
    np.testing.assert_array_equal(t["truncated"], [False, True] * 3)


def test_next_action_belongs_to_the_next_state_also_at_a_truncation():
    # The action depends on the state alone, so the one drawn after a reset would show at once.
    action = np.array([1, 2, 0, 2, 1])
    t = numpy(collect(ring(3), action, 3000, num_envs=7, seed=2))
    np.testing.assert_array_equal(t["action"], action[t["state"]])
    np.testing.assert_array_equal(t["next_action"], action[t["next_state"]])
    assert t["truncated"].sum() > 900


def test_actions_around_a_truncation_are_uniform_and_independent():
    t = numpy(collect(ring(2), num_transitions=200_000, seed=3))
    end = np.flatnonzero(t["truncated"])[:-1]
    end = end[(end + 1) % 1000 != 0]  # inside one environment
    # State where it was cut, action drawn there, first state and action of the next episode.
    counts = tally(
        (5, 3, 5, 3),
        t["next_state"][end],
        t["next_action"][end],
        t["state"][end + 1],
        t["action"][end + 1],
    )
    first = np.arange(1, 6)[:, None] / 15 / 3
    expected = np.broadcast_to(first / 3, (3, 5, 3)).reshape(45)
    assert_frequencies(counts.reshape(5, 45), expected)


def test_frozen_lake_follows_gymnasium(lake):
    mdp, data = lake
    datasets.validate(data)
    assert data.info == datasets.DatasetInfo("FrozenLake-v1", 16, 4, "random", seed=5)
    t = numpy(data)
    probability, target, reward, terminated = (
        np.asarray(x) for x in (mdp.probability, mdp.next_state, mdp.reward, mdp.terminated)
    )
    # Frequencies of next states, for each pair that occurs, against Gymnasium's.
    truth = np.zeros((16, 4, 16))
    np.add.at(truth, (*np.indices(target.shape)[:2], target), probability)
    counts = tally((16, 4, 16), t["state"], t["action"], t["next_state"])
    visited = counts.sum((1, 2)) > 0
    assert visited.sum() == 11
    assert_frequencies(counts[visited], truth[visited])
    assert_frequencies(counts.sum(2)[visited], 0.25)
    # Reward and termination are functions of the next state here.
    np.testing.assert_array_equal(t["reward"], t["next_state"] == 15)
    np.testing.assert_array_equal(t["discount"] == 0, np.isin(t["next_state"], [5, 7, 11, 12, 15]))
    assert (t["state"][t["start"]] == 0).all()
    assert reward.max() == 1
    assert terminated.any()


def test_frozen_lake_episodes_are_as_long_as_in_theory(lake):
    # Mean length of the episodes by matrix arithmetic, over starts that are not cut by the end.
    mdp, data = lake
    t = numpy(data)
    probability, target = np.asarray(mdp.probability), np.asarray(mdp.next_state)
    chain = np.zeros((16, 16))
    step = np.indices(target.shape)[0]
    np.add.at(chain, (step, target), probability * ~np.asarray(mdp.terminated) / 4)
    alive = np.stack([np.linalg.matrix_power(chain, n)[0].sum() for n in range(100)])
    mean, square = alive.sum(), ((2 * np.arange(100) + 1) * alive).sum()
    starts = np.flatnonzero(t["start"])
    length = np.diff(np.append(starts, len(data)))
    length = length[starts % 1000 < 900]  # these cannot reach the end of their environment
    z = (length.mean() - mean) / np.sqrt((square - mean**2) / len(length))
    assert abs(z) < scipy.stats.norm.isf(FALSE_ALARM / 2)


@pytest.mark.slow  # as FrozenLake above
def test_taxi_follows_gymnasium():
    mdp = gymnasium_mdp("Taxi-v4", 200)
    data = collect(mdp, num_transitions=100_000, seed=1)
    datasets.validate(data)
    t = numpy(data)
    pair = t["state"], t["action"]
    for column, table in (
        ("next_state", mdp.next_state),
        ("reward", mdp.reward),
        ("discount", ~mdp.terminated),
    ):
        np.testing.assert_array_equal(t[column], np.asarray(table)[..., 0][pair])
    starts = np.flatnonzero(t["start"])
    assert np.diff(starts).max() == 200
    full = collect(mdp, num_transitions=30_000, num_envs=30_000, seed=1)
    first = tally((500,), numpy(full)["state"])
    assert_frequencies(first[None], np.asarray(mdp.initial, np.float64))


def test_epsilon_greedy_takes_actions_as_often_as_it_says():
    q = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0], [-3, -2, -1]])
    greedy = [1, 0, 2, 0, 2]  # of equal values the lowest
    policy = datasets.epsilon_greedy_policy(q, 0.3)
    data = collect(ring(10), policy, 100_000, seed=4)
    assert data.info.policy == "epsilon-greedy, epsilon 0.3"
    t = numpy(data)
    expected = np.full((5, 3), 0.1)
    expected[np.arange(5), greedy] = 0.8
    assert_frequencies(tally((5, 3), t["state"], t["action"]), expected)
    assert_frequencies(tally((5, 3), t["next_state"], t["next_action"]), expected)


@pytest.mark.parametrize(("epsilon", "expected"), [(0, [0, 1, 0]), (1, [1 / 3] * 3)])
def test_epsilon_at_its_limits(epsilon, expected):
    policy = datasets.epsilon_greedy_policy(np.eye(3)[[1] * 5], epsilon)
    counts = np.bincount(numpy(collect(ring(10), policy, 3000))["action"], minlength=3)
    assert_frequencies(counts[None], np.array(expected))


def test_stochastic_policy_takes_actions_as_often_as_it_says():
    table = np.array([[0, 0, 1], [0.5, 0, 0.5], [0.9, 0.1, 0], [0.2, 0.3, 0.5], [0, 1, 0]])
    t = numpy(collect(ring(10), table, 100_000, seed=4))
    assert_frequencies(tally((5, 3), t["state"], t["action"]), table)


def test_same_seed_same_data_and_another_seed_other_data():
    first, second, other = (collect(ring(4), num_transitions=50, seed=seed) for seed in (8, 8, 9))
    assert bits(first) == bits(second)
    assert bits(first)[0]["state"] != bits(other)[0]["state"]


def test_rollout_maps_over_keys():
    sampler, policy = dynamics.make_sampler(ring(4)), datasets.random_policy(3)
    keys = jax.random.split(jax.random.key(0), 3)

    def run(key):
        return rollout(sampler, policy, key, num_transitions=10, num_envs=3, time_limit=4)

    together = jax.vmap(run)(keys)
    for i in range(3):
        alone = run(keys[i])
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_array_equal(a[i], b)


def test_one_program_serves_every_seed_and_epsilon():
    q = jnp.zeros((5, 3), jnp.float32)
    for seed, epsilon in ((0, 0.1), (1, 0.2)):
        collect(ring(4), datasets.epsilon_greedy_policy(q, epsilon), 20, seed=seed)
        if not seed:
            compiled = rollout._cache_size()
    assert rollout._cache_size() == compiled


@pytest.mark.parametrize(("rows", "envs"), [(500, 1), (5_000, 5), (1_000_000, 1000)])
def test_environments_take_a_thousand_steps_or_more_by_default(rows, envs, monkeypatch):
    asked = {}

    def stop(*args, **static):
        asked.update(static)
        raise InterruptedError

    monkeypatch.setattr(datasets.collection, "rollout", stop)
    with pytest.raises(InterruptedError):
        collect(ring(4), num_transitions=rows)
    assert asked == {"num_transitions": rows, "num_envs": envs, "time_limit": 4}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_transitions": 0}, ValueError, "num_transitions must be from 1 to 2147483647"),
        ({"num_transitions": 1e6}, TypeError, "num_transitions must be an int, got 1000000.0"),
        ({"num_transitions": True}, TypeError, "num_transitions must be an int, got True"),
        ({"num_transitions": 5, "num_envs": 6}, ValueError, "num_envs must be from 1 to 5, got 6"),
        ({"seed": -1}, ValueError, "seed must be from 0 to 4294967295, got -1"),
        ({"seed": 2**32}, ValueError, "seed must be from"),
        ({"policy": "greedy"}, ValueError, "policy must be one of random, got 'greedy'"),
        (
            {"policy": np.zeros(4, int)},
            ValueError,
            r"policy must have .*, got \(4, 3\)",
        ),
        (
            {"policy": np.eye(2)[[0] * 5]},
            ValueError,
            r"policy must have .*, got \(5, 2\)",
        ),
        ({"policy": np.full(5, 3)}, ValueError, r"actions must be integers in \[0, 3\)"),
        ({"policy": np.full((5, 3), 0.5)}, ValueError, "must be 1, got 1.5"),
    ],
)
def test_collect_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        collect(ring(4), **{"num_transitions": 10, **arguments})


def test_collect_refuses_a_time_limit_of_zero():
    with pytest.raises(ValueError, match=r"mdp\.time_limit must be from 1 to"):
        collect(ring(0), num_transitions=10)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: datasets.random_policy(0), ValueError, "num_actions must be at least 1, got 0"),
        (
            lambda: datasets.epsilon_greedy_policy(np.zeros((2, 2)), 1.5),
            ValueError,
            r"epsilon must be from 0 to 1, got 1.5",
        ),
        (
            lambda: datasets.epsilon_greedy_policy(np.array([[0, np.nan]]), 0.1),
            ValueError,
            "q must be finite, got NaN",
        ),
        (
            lambda: datasets.stochastic_policy([[1.5, -0.5]]),
            ValueError,
            r"must be a probability, got -0.5",
        ),
        (
            lambda: datasets.deterministic_policy([0.0, 1.0], 2),
            ValueError,
            r"actions must be integers in \[0, 2\)",
        ),
    ],
)
def test_policies_refuse(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_import_is_light():
    program = """
import sys, accel_rl.datasets
sys.exit(bool({"gymnax", "gymnasium", "minari"} & set(sys.modules)))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
