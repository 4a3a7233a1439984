"""Streamed training: the bits of a training in memory, and refused arguments."""

import dataclasses

import jax
import numpy as np
import pytest
from kernels_present import needs_kernels
from transitions import synthetic

from accel_rl import pim, tabular

S, A, D = 6, 3, 13
INT32 = tabular.make_numerics("int32_scaled")
LOG = jax.tree.map(np.asarray, synthetic(S, A, 700))


@pytest.mark.parametrize(
    ("numerics", "merge", "order", "rule", "group_size"),
    [
        # XLA may contract FP32 sums of merges differently in different programs.
        pytest.param("fp32", "visits", "SEQ", "q_learning", 5, marks=needs_kernels),
        ("int32_scaled", "damped", "STR", "sarsa", 4),
        *(
            pytest.param(*case, marks=(pytest.mark.long, needs_kernels))
            for case in (
                ("fp32", "mean", "STR", "expected_sarsa", 1),
                ("fp32", "visited", "SEQ", "sarsa", 13),
                ("int32_pow2", "visits", "SEQ", "q_learning", 64),
            )
        ),
    ],
)
def test_equals_a_training_in_memory_bit_for_bit(numerics, merge, order, rule, group_size):
    setting = {
        "rule": tabular.make_rule(rule, tabular.make_numerics(numerics)),
        "schedule": pim.MergeSchedule(passes=5, period=2, merge=merge),
        "order": order,
        "target_block": 16,
    }
    rates = tabular.Hyperparameters(alpha=0.2, gamma=0.9)
    setting["probe"], told = jax.numpy.sin, []
    expected = pim.train(pim.partition(LOG, D, S, A), rates, **setting)
    setting |= {"group_size": group_size, "on_merge": told.append}
    found = pim.train_streamed(LOG, D, S, A, rates, **setting)
    assert told == [2, 2, 1]
    assert expected.history.shape == (3, S, A)
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert np.any(found.values)


@pytest.mark.parametrize(("order", "rule"), [("RAN", "q_learning"), ("SEQ", "double_q_learning")])
def test_random_choices_are_refused(order, rule):
    schedule = pim.MergeSchedule(passes=1)
    with pytest.raises(ValueError, match=f"take turns only .* got order {order} and rule {rule}"):
        pim.train_streamed(
            LOG, D, S, A, rule=tabular.make_rule(rule), schedule=schedule, order=order
        )


def test_a_bad_row_has_its_number_in_the_log():
    schedule = pim.MergeSchedule(passes=1)
    state = LOG.state.copy()
    state[650] = S
    bad = type(LOG)(state, *jax.tree.leaves(LOG)[1:])
    with pytest.raises(ValueError, match=r"row 650: state is 6, must be in \[0, 6\)"):
        pim.train_streamed(bad, D, S, A, rule=tabular.q_learning(), schedule=schedule)


def test_a_reward_of_the_last_group_is_refused_before_any_training():
    reward = LOG.reward.copy()
    reward[650] = 1e9
    bad, told = dataclasses.replace(LOG, reward=reward), []
    setting = {"schedule": pim.MergeSchedule(1), "group_size": 1, "on_merge": told.append}
    with pytest.raises(ValueError, match=r"rewards must be finite and in .* got -?\S+ to 1e\+09"):
        pim.train_streamed(bad, D, S, A, rule=tabular.q_learning(INT32), **setting)
    assert not told


def test_bad_arguments_are_named():
    for arguments, message in (
        ({"group_size": 0}, "group_size must be at least 1, got 0"),
        ({"schedule": pim.MergeSchedule(1, 1, "x")}, "merge must be one of visits"),
        ({"schedule": pim.MergeSchedule(1, 0)}, "period must be at least 1, got 0"),
        ({"schedule": pim.MergeSchedule(0)}, "passes must be at least 1, got 0"),
        ({"order": "x"}, "order must be one of SEQ"),
    ):
        options = {"schedule": pim.MergeSchedule(1), **arguments}
        with pytest.raises(ValueError, match=message):
            pim.train_streamed(LOG, D, S, A, rule=tabular.q_learning(), **options)
    with pytest.raises(ValueError, match="num_dpus must be from 1 to 700, got 701"):
        pim.train_streamed(LOG, 701, S, A, rule=tabular.q_learning(), schedule=pim.MergeSchedule(1))
