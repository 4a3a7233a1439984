import jax.numpy as jnp
import numpy as np
import pytest
from dataset_examples import bits, small

from accel_rl.datasets import DatasetError, from_arrays

# Three episodes: 0 1 3 terminates, 4 0 is truncated, and 2 2 is cut by the end of the log.
STATE, ACTION = [0, 1, 4, 2], [1, 2, 1, 0]
REWARD, NEXT_STATE = [1.0, 12.5, 41.0, 20.0], [1, 3, 0, 2]
TERMINATED = [False, True, False, False]


def rows(data):
    t = data.transitions
    columns = (t.state, t.action, t.reward, t.next_state, t.discount, t.next_action, data.episode)
    return [tuple(row) for row in np.stack([np.asarray(c, float) for c in columns], 1)]


def imported(**options):
    options = {"terminated": TERMINATED} | options
    return from_arrays(STATE, ACTION, REWARD, NEXT_STATE, **options)


def test_next_actions_come_from_the_rows_below():
    data = imported(environment="mine")
    assert rows(data) == [(0, 1, 1, 1, 1, 2, 0), (1, 2, 12.5, 3, 0, 0, 0)]
    info = data.info
    assert (info.num_states, info.num_actions, info.dropped) == (5, 3, 2)
    assert (info.environment, info.policy) == ("mine", "unknown, imported from arrays")
    data = imported(require_next_action=False, num_states=7, num_actions=4)
    assert rows(data)[2:] == [(4, 1, 41, 0, 1, 0, 1), (2, 0, 20, 2, 1, 0, 2)]
    np.testing.assert_array_equal(data.truncated, [0, 0, 1, 1])
    assert (data.info.num_states, data.info.num_actions) == (7, 4)
    assert (data.info.dropped, data.info.missing_next_action) == (0, 2)


def test_truncation_is_not_termination_where_the_states_meet():
    ends = {"terminated": [0, 0, 0], "truncated": [0, 1, 0]}
    data = from_arrays(
        [0, 1, 2], [0, 1, 0], [0, 0, 0], [1, 2, 3], **ends, require_next_action=False
    )
    assert rows(data)[1] == (1, 1, 0, 2, 1, 0, 0)
    np.testing.assert_array_equal(data.episode, [0, 0, 1])
    both = from_arrays([0], [0], [0], [0], [True], [True])
    assert rows(both) == [(0, 0, 0, 0, 0, 0, 0)]


def test_given_next_actions_are_kept_and_none_is_missing():
    data = imported(next_action=[2, -1, 0, 1])  # of a row that terminated it says nothing
    assert [row[5] for row in rows(data)] == [2, 0, 0, 1]
    assert (data.info.dropped, data.info.missing_next_action) == (0, 0)
    # Row 1 begins where row 0 ended, and with another action: it is no continuation.
    data = from_arrays([0, 1], [0, 1], [0, 0], [1, 0], truncated=[0, 0], next_action=[2, 0])
    np.testing.assert_array_equal(data.episode, [0, 1])


@pytest.mark.parametrize(
    "as_type", [np.uint8, np.int64, np.float64, jnp.asarray, jnp.bfloat16, list]
)
def test_types_are_cast_and_discounts_stand_for_terminations(as_type):
    cast = as_type if as_type in (jnp.asarray, list) else lambda c: np.asarray(c).astype(as_type)
    data = from_arrays(
        cast(STATE), cast(ACTION), REWARD, cast(NEXT_STATE), discount=cast([1, 0, 1, 1])
    )
    assert bits(data) == bits(imported())


def test_columns_of_a_dataset_give_the_dataset_again():
    data = small()
    t = data.transitions
    again = from_arrays(
        t.state, t.action, t.reward, t.next_state, truncated=data.truncated, discount=t.discount,
        next_action=t.next_action, num_states=4, num_actions=10,
    )  # fmt: skip
    assert bits(again)[0] == bits(data)[0]


def test_a_shuffled_log_says_how_its_rows_can_stay():
    shuffled = ([0, 2], [0, 1], [0, 0], [1, 3], [False, False])
    with pytest.raises(DatasetError, match=r"none of the 2 rows .* require_next_action=False"):
        from_arrays(*shuffled)
    assert len(from_arrays(*shuffled, require_next_action=False)) == 2
