"""What training learns at SwiftRL's size, against exact dynamic programming."""

import jax.numpy as jnp
import numpy as np
import pytest
import quick

from accel_rl import datasets, envs, pim, tabular

RATES = tabular.Hyperparameters(alpha=0.1, gamma=0.95, epsilon=0.1)


def experiment(name, num_rows, num_dpus):
    mdp = envs.make_mdp(name)
    rows = datasets.collect(mdp, "random", num_rows, seed=0, environment=name).transitions
    return mdp, rows, pim.partition(rows, num_dpus, mdp.num_states, mdp.num_actions)


@pytest.fixture(scope="module")
def frozen_lake():
    return experiment("FrozenLake-v1", 1_000_000, 2_000)


@pytest.fixture(scope="module")
def taxi():
    return experiment("Taxi-v4", 1_000_000, 2_000)


def greedy_return(mdp, values):
    return float(tabular.episode_return(mdp, tabular.greedy_policy(values)))


@pytest.mark.parametrize(
    "numerics",
    ["fp32", *(pytest.param(n, marks=pytest.mark.long) for n in ("int32_scaled", "int32_pow2"))],
)
@pytest.mark.parametrize(
    ("name", "least"),
    [("frozen_lake", 0.72), pytest.param("taxi", 7.9, marks=pytest.mark.long)],
)
def test_q_learning_on_two_thousand_dpus(name, least, numerics, request):
    mdp, _, chunks = request.getfixturevalue(name)
    rule = tabular.q_learning(tabular.make_numerics(numerics))
    result = pim.train(chunks, RATES, rule=rule, schedule=pim.MergeSchedule(passes=100))
    assert greedy_return(mdp, result.values) >= least


@pytest.mark.long  # collects a million rows of Taxi
def test_plain_averaging_loses_taxi(taxi):
    # A DPU sees about one pair in eleven of Taxi; the others' unchanged tables shrink its step.
    mdp, _, chunks = taxi
    schedule = pim.MergeSchedule(passes=100, merge="mean")
    result = pim.train(chunks, RATES, rule=tabular.q_learning(), schedule=schedule)
    assert greedy_return(mdp, result.values) < 0


def error_where_seen(rows, values, truth):
    """Weighted by visits, and the largest."""
    seen = jnp.zeros(values.shape, jnp.int32).at[rows.state, rows.action].add(1)
    error, share = np.abs(np.asarray(values - truth)), np.asarray(seen / seen.sum())
    return float((error * share).sum()), float(error[share > 0].max())


@pytest.mark.parametrize("numerics", quick.only(["fp32"], ["fp32", "int32_scaled"]))
@pytest.mark.parametrize("rule", quick.only(["sarsa"], ["sarsa", "sarsa_epsilon_greedy"]))
def test_sarsa_learns_the_value_of_the_policy_that_it_estimates(rule, numerics, frozen_lake):
    mdp, rows, chunks = frozen_lake
    made = tabular.make_rule(rule, tabular.make_numerics(numerics))
    result = pim.train(chunks, RATES, rule=made, schedule=pim.MergeSchedule(passes=100))
    if rule == "sarsa":  # logged next actions: the behaviour policy's value
        policy = tabular.uniform_policy(mdp.num_states, mdp.num_actions)
    else:
        policy = tabular.epsilon_greedy(result.values, 0.1)
    _, truth = tabular.policy_evaluation(mdp, policy, 0.95)
    average, largest = error_where_seen(rows, result.values, truth)
    assert average < 0.01
    assert largest < 0.05


@pytest.mark.long
@pytest.mark.parametrize("rule", ["sarsa", "sarsa_epsilon_greedy"])
def test_sarsa_converges_on_taxi_too(rule):
    mdp, rows, chunks = experiment("Taxi-v4", 400_000, 200)
    # A constant step is biased by about alpha, because the rows of a trajectory are correlated:
    # alpha 0.5 ends 3 % off, 0.2 ends 1 % off.
    rates = tabular.Hyperparameters(alpha=0.2, gamma=0.95, epsilon=0.1)
    result = pim.train(
        chunks, rates, rule=tabular.make_rule(rule), schedule=pim.MergeSchedule(passes=600)
    )
    policy = tabular.uniform_policy(mdp.num_states, mdp.num_actions)
    if rule == "sarsa_epsilon_greedy":
        policy = tabular.epsilon_greedy(result.values, 0.1)
        assert greedy_return(mdp, result.values) > 7.9
    else:  # the greedy policy of a random policy's values: right, and bad
        assert greedy_return(mdp, result.values) < -100
    _, truth = tabular.policy_evaluation(mdp, policy, 0.95)
    average, _ = error_where_seen(rows, result.values, truth)
    span = float(truth.max() - truth.min())
    assert average < 0.02 * span
