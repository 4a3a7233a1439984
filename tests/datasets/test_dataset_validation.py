import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dataset_examples import dataset_of, small

from accel_rl.datasets import DatasetError, validate


def changed(column, row, value):
    """The small dataset with one entry replaced."""
    data = small()
    if column == "episode":
        return dataclasses.replace(data, episode=data.episode.at[row].set(value))
    old = getattr(data.transitions, column)
    transitions = dataclasses.replace(data.transitions, **{column: old.at[row].set(value)})
    return dataclasses.replace(data, transitions=transitions)


def test_derived_columns():
    data = small()
    validate(data)
    assert len(data) == 6
    np.testing.assert_array_equal(data.episode_start, [1, 0, 0, 1, 1, 0])
    np.testing.assert_array_equal(data.truncated, [0, 0, 0, 1, 0, 1])


def test_a_dataset_passes_through_jit():
    data = small()
    out = jax.jit(lambda d: (d, d.truncated, d.episode_start))(data)
    assert out[0].info == data.info
    np.testing.assert_array_equal(out[1], data.truncated)
    np.testing.assert_array_equal(out[2], data.episode_start)


def test_a_row_alone_is_an_episode():
    validate(dataset_of([([1, 0], [0, 1], [1.0], False), ([1, 0], [1, 0], [1.0], True)], 2, 2))


@pytest.mark.parametrize(
    ("column", "row", "value", "message"),
    [
        ("state", 1, 4, r"row 1 of 6: state is 4, must be in \[0, 4\)"),
        ("state", 5, -1, r"row 5 of 6: state is -1, must be in \[0, 4\)"),
        ("action", 0, 2, r"row 0 of 6: action is 2, must be in \[0, 2\)"),
        ("next_state", 2, 4, r"row 2 of 6: next_state is 4, must be in \[0, 4\)"),
        ("next_action", 3, -7, r"row 3 of 6: next_action is -7, must be in \[0, 2\)"),
        ("reward", 4, np.nan, "row 4 of 6: reward is nan, must be finite"),
        ("reward", 0, -np.inf, "row 0 of 6: reward is -inf, must be finite"),
        ("discount", 3, 0.5, "row 3 of 6: discount is 0.5, must be 0 or 1"),
        ("discount", 3, np.nan, "row 3 of 6: discount is nan, must be 0 or 1"),
        ("next_action", 2, 1, "row 2 of 6: next_action is 1, must be 0 where discount is 0"),
        ("discount", 4, 0, "row 4 of 6: next_action is 1, must be 0 where discount is 0"),
        ("episode", 0, -(2**31), "row 0 of 6: episode is -2147483648, must be 0 in the first row"),
        ("episode", 0, 1, "row 0 of 6: episode is 1, must be 0 in the first row"),
        (
            "episode",
            3,
            2**31 - 1,
            "row 3 of 6: episode is 2147483647, .* the row above or one more",
        ),
        ("episode", 2, -1, "row 2 of 6: episode is -1, must be"),
        ("episode", 5, 1, "row 5 of 6: episode is 1, must be"),
        ("next_state", 0, 2, "row 0 of 6: next_state is 2, must be the state of the row below"),
        ("state", 5, 1, "row 4 of 6: next_state is 0, must be the state of the row below"),
        ("action", 1, 0, "row 0 of 6: next_action is 1, must be the action of the row below"),
    ],
)
def test_a_wrong_entry_is_named_in_blocks_of_any_length(column, row, value, message, monkeypatch):
    for length in (1 << 20, 1, 2, 5, 6):
        monkeypatch.setattr("accel_rl.datasets.dataset._BLOCK", length)
        with pytest.raises(DatasetError, match=message):
            validate(changed(column, row, value))
        validate(small())


def test_nothing_follows_a_termination():
    data = dataset_of([([0, 1], [0, 0], [1.0], True), ([1, 2], [0, 0], [1.0], True)], 3, 1)
    with pytest.raises(DatasetError, match=r"row 0 of 2: discount is 0\.0, must be 1 where"):
        validate(dataclasses.replace(data, episode=jnp.zeros(2, jnp.int32)))


def test_layout_and_sizes():
    data = small()

    def with_column(**change):
        return dataclasses.replace(
            data, transitions=dataclasses.replace(data.transitions, **change)
        )

    for wrong, message in (
        (
            with_column(reward=np.zeros(6, np.float64)),
            r"column reward must be float32\[6\], got float64\[6\]",
        ),
        (
            with_column(action=jnp.zeros(5, jnp.int32)),
            r"column action must be int32\[6\], got int32\[5\]",
        ),
        (
            with_column(state=jnp.zeros((6, 1), jnp.int32)),
            r"column state must be int32\[6\], got int32\[6, 1\]",
        ),
        (jax.tree.map(lambda x: x[:0], data), r"column state must be int32\[1\], got int32\[0\]"),
        (
            dataclasses.replace(data, info=dataclasses.replace(data.info, num_states=0)),
            r"info\.num_states must be from 1 to 2147483648, got 0",
        ),
        (
            dataclasses.replace(data, info=dataclasses.replace(data.info, dropped=-1)),
            r"info\.dropped must be from 0 to 2147483648, got -1",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            validate(wrong)


def test_the_first_rows_of_a_dataset_are_a_dataset():
    validate(jax.tree.map(lambda x: x[:5], small()))
