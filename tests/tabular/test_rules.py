"""Rules one transition at a time, against arithmetic by hand, and by the conformance test."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rule_conformance import check_rule
from transitions import synthetic

from accel_rl import tabular
from accel_rl.tabular import RULES, Hyperparameters, make_numerics, make_rule
from accel_rl.types import TabularTransition

Q = jnp.asarray([[[1.0, 2.0, 2.0], [4.0, 8.0, -1.0]]])
RATES = Hyperparameters(alpha=0.5, gamma=0.25, epsilon=0.375)
STEP = TabularTransition(
    jnp.int32(0), jnp.int32(1), jnp.float32(6), jnp.int32(1), jnp.float32(1), jnp.int32(2)
)


# Every rule, and all numerics among them.
QUICK = {
    ("q_learning", "int32_scaled"),
    ("sarsa", "fp32"),
    ("sarsa_epsilon_greedy", "int32_pow2"),
    ("expected_sarsa", "fp32"),
    ("double_q_learning", "int32_pow2"),
}
CASES = itertools.product(RULES, ["fp32", "int32_scaled", "int32_pow2"])


@pytest.mark.parametrize(
    ("name", "numerics"),
    [pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in CASES],
)
def test_conformance(name, numerics):
    check_rule(make_rule(name, make_numerics(numerics)))


@pytest.mark.parametrize(
    ("name", "next_value"),
    [
        ("q_learning", 8.0),
        ("sarsa", -1.0),
        ("expected_sarsa", 8 + 0.375 * ((4 + 8 - 1) / 3 - 8)),
    ],
)
def test_targets_by_hand(name, next_value):
    new = make_rule(name).update(Q, STEP, RATES)
    assert float(new[0, 0, 1]) == pytest.approx(2 + 0.5 * (6 + 0.25 * next_value - 2))
    assert np.count_nonzero(np.asarray(new != Q)) == 1


def test_sarsa_draws_epsilon_greedy_actions_with_the_stated_probabilities():
    rule = make_rule("sarsa_epsilon_greedy")
    keys = jax.random.split(jax.random.key(1), 20_000)
    new = jax.jit(jax.vmap(lambda key: rule.update(Q, STEP, RATES, key)[0, 0, 1]))(keys)
    next_values = ((np.asarray(new) - 2) / 0.5 + 2 - 6) / 0.25
    for value, probability in ((8, 1 - 0.375 + 0.125), (4, 0.125), (-1, 0.125)):
        share = np.mean(np.isclose(next_values, value, atol=1e-3))
        # Five standard errors: a false alarm in 1.7 million.
        assert abs(share - probability) < 5 * np.sqrt(probability * (1 - probability) / 20_000)


def test_double_q_learning_takes_the_other_tables_opinion_at_the_first_maximum():
    first = jnp.asarray([[0.0, 0.0, 0.0], [5.0, 5.0, 1.0]])
    second = jnp.asarray([[0.0, 0.0, 0.0], [1.0, 2.0, 9.0]])
    rule = make_rule("double_q_learning")
    keys = jax.random.split(jax.random.key(0), 400)
    tables = jnp.stack([first, second])
    update = jax.jit(jax.vmap(lambda key: rule.update(tables, STEP, RATES, key)))
    new = np.asarray(update(keys))[:, :, 0, 1]
    in_first = new[:, 0] != 0
    # argmax of the first table is action 0 (lowest index of the tie): the second says 1.
    np.testing.assert_allclose(new[in_first, 0], 0.5 * (6 + 0.25 * 1))
    # argmax of the second is action 2: the first says 1.
    np.testing.assert_allclose(new[~in_first, 1], 0.5 * (6 + 0.25 * 1))
    assert abs(in_first.mean() - 0.5) < 5 * 0.5 / 20  # five standard errors


def test_random_rules_ask_for_a_key():
    with pytest.raises(ValueError, match="double_q_learning draws at random: key must be given"):
        make_rule("double_q_learning").update(jnp.stack([Q[0], Q[0]]), STEP, RATES)


def test_truncation_bootstraps_and_termination_does_not():
    ended = TabularTransition(**{**vars(STEP), "discount": jnp.float32(0)})
    rule = make_rule("q_learning")
    assert float(rule.update(Q, ended, RATES)[0, 0, 1]) == pytest.approx(4)
    assert float(rule.update(Q, STEP, RATES)[0, 0, 1]) == pytest.approx(5)


def test_independent_learners_equal_single_ones():
    rule = make_rule("q_learning", make_numerics("int32_scaled"))
    agents = tabular.independent_learners(rule, 4)
    rows = jax.tree.map(lambda x: x.reshape(4, 5), synthetic(2, 3, 20))
    tables = agents.init(2, 3)
    update, alone_update = jax.jit(agents.update), jax.jit(rule.update)
    rates = Hyperparameters(alpha=jnp.linspace(0.1, 0.4, 4), gamma=0.5, epsilon=0.1)
    for k in range(5):
        tables = update(tables, jax.tree.map(lambda x, k=k: x[:, k], rows), rates)
    for agent in range(4):
        alone = rule.init(2, 3)
        for k in range(5):
            row = jax.tree.map(lambda x, i=(agent, k): x[i], rows)
            alone = alone_update(alone, row, Hyperparameters(rates.alpha[agent], 0.5, 0.1))
        np.testing.assert_array_equal(tables[agent], alone)
    assert agents.values(tables).shape == (4, 2, 3)
    assert tabular.independent_learners(rule, 4) == agents  # so that nothing compiles again
    with pytest.raises(ValueError, match="num_agents must be at least 1, got 0"):
        tabular.independent_learners(rule, 0)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"rule must be one of q_learning, .*'dyna'"):
        make_rule("dyna")
    with pytest.raises(ValueError, match=r"next_action must be one of .*'greedy'"):
        tabular.sarsa(next_action="greedy")
    with pytest.raises(ValueError, match=r"path must be one of auto, .*'simd'"):
        tabular.select_path("simd")
