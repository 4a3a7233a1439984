import numpy as np
import pytest
import quick
from dataset_examples import countdown, gymnasium_mdp, mdp_of, ring

from accel_rl.datasets import DatasetError, collect, load_text, validate

# Two episodes of the ring: 0 1 3 | 4 0, the second cut by the end of the log.
LOG = """\
# state action reward next_state
0 1 1 1
1 2 12.0 3

4 1 41 0   # a new episode
0 0 0 0
"""
SIZES = {"num_states": 5, "num_actions": 3}


@pytest.fixture
def write(tmp_path):
    def write(content):
        (tmp_path / "log.txt").write_text(content)
        return tmp_path / "log.txt"

    return write


def rows(data):
    t = data.transitions
    columns = (t.state, t.action, t.reward, t.next_state, t.discount, t.next_action, data.episode)
    return [tuple(row) for row in np.stack([np.asarray(c, float) for c in columns], 1)]


def assert_refused(path, message, **arguments):
    with pytest.raises(DatasetError, match=message) as caught:
        load_text(path, **(arguments or {**SIZES, "episode_end": "truncated"}))
    assert str(caught.value).startswith(f"{path}: ")


def test_rows_without_a_next_action_are_dropped_and_counted(write):
    data = load_text(write(LOG), **SIZES, episode_end="truncated", environment="ring")
    assert rows(data) == [(0, 1, 1, 1, 1, 2, 0), (4, 1, 41, 0, 1, 0, 1)]
    info = data.info
    assert (info.dropped, info.missing_next_action) == (2, 0)
    assert (info.environment, info.seed) == ("ring", None)
    assert info.policy == "unknown, imported from log.txt"
    assert (info.num_states, info.num_actions) == (5, 3)


def test_rows_without_a_next_action_can_stay(write):
    data = load_text(write(LOG), **SIZES, episode_end="truncated", require_next_action=False)
    assert rows(data) == [
        (0, 1, 1, 1, 1, 2, 0),
        (1, 2, 12, 3, 1, 0, 0),
        (4, 1, 41, 0, 1, 0, 1),
        (0, 0, 0, 0, 1, 0, 1),
    ]
    np.testing.assert_array_equal(data.truncated, [0, 1, 0, 1])
    assert (data.info.dropped, data.info.missing_next_action) == (0, 2)


def test_ends_taken_for_terminations_save_the_end_of_the_log(write):
    data = load_text(write(LOG), **SIZES, episode_end="terminated")
    assert rows(data) == [(0, 1, 1, 1, 1, 2, 0), (1, 2, 12, 3, 0, 0, 0), (4, 1, 41, 0, 1, 0, 1)]
    assert data.info.dropped == 1


def test_episodes_of_one_dropped_row_leave_no_gap(write):
    path = write("0 0 0 0\n0 0 0 1\n3 0 0 4\n2 0 0 2\n2 0 0 2\n")
    data = load_text(path, **SIZES, episode_end="truncated")
    np.testing.assert_array_equal(data.episode, [0, 1])
    assert data.info.dropped == 3


def test_the_tables_tell_termination_also_where_the_state_goes_on(write):
    # After 0 -> 1 -> 1 (end), the next episode begins in 0; the second never ends.
    path = write("0 0 0 1\n1 0 1 1\n0 0 0 1\n")
    data = load_text(path, mdp=countdown(2, None), require_next_action=False)
    np.testing.assert_array_equal(data.transitions.discount, [1, 0, 1])
    # A terminating self-loop: the log seems to continue, the tables know better.
    loop = mdp_of([[[1.0]]], [[[0]]], [[[1.0]]], [[[True]]], [1.0])
    data = load_text(write("0 0 1 0\n0 0 1 0\n"), mdp=loop)
    np.testing.assert_array_equal(data.transitions.discount, [0, 0])
    np.testing.assert_array_equal(data.episode, [0, 1])


@pytest.mark.parametrize("name", quick.only(["FrozenLake-v1"], ["FrozenLake-v1", "Taxi-v4"]))
def test_a_collected_log_comes_back(name, write, tmp_path):
    mdp = gymnasium_mdp(name, 50)
    data = collect(mdp, num_transitions=5000, num_envs=2, seed=1)
    t = data.transitions
    table = np.stack([np.asarray(c, float) for c in (t.state, t.action, t.reward, t.next_state)], 1)
    np.savetxt(tmp_path / "log.txt", table, fmt="%g")
    back = load_text(tmp_path / "log.txt", mdp=mdp, require_next_action=False)
    for column in ("state", "action", "reward", "next_state", "discount"):
        np.testing.assert_array_equal(
            getattr(back.transitions, column), getattr(t, column), err_msg=column
        )
    # A truncation is invisible where the next episode begins in the same state; else all agrees.
    start, end = np.asarray(t.state), np.asarray(t.next_state)
    seen = np.asarray(data.truncated) & np.append(start[1:] != end[:-1], True)
    np.testing.assert_array_equal(back.truncated, seen)
    known = ~np.asarray(data.truncated)
    np.testing.assert_array_equal(
        np.asarray(back.transitions.next_action)[known], np.asarray(t.next_action)[known]
    )
    assert back.info.missing_next_action == seen.sum() > 0
    validate(back)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no rows: the file is empty"),
        ("# nothing\n\n", "no rows: the file is empty"),
        ("0 1 1 1\n\n1 2 x 3\n", "line 3: reward is 'x', must be a number"),
        ("0 1 1 1\n1 2 12\n", r"line 2: 3 fields, must be 4 \(state, action, reward, next_state\)"),
        ("0 1 1 1 9\n", "line 1: 5 fields, must be 4"),
        ("0 1 1\n0 1 1\n", "line 1: 3 fields, must be 4"),
        ("0,1,1,1\n", "line 1: state is '0,1,1,1', must be a number"),
        ("\x00\x01PK\n", "line 1: state is .*, must be a number"),
        (
            "0 1 1 1\n1 2 12 5\n",
            r"line 2 \(row 1\): next_state is 5, must be a whole number in \[0, 5\)",
        ),
        ("#\n0 3 1 1\n", r"line 2 \(row 0\): action is 3, must be a whole number in \[0, 3\)"),
        ("-1 0 1 1\n", r"state is -1, must be"),
        ("0.5 0 1 1\n", r"state is 0.5, must be"),
        ("nan 0 1 1\n", r"state is nan, must be"),
        ("0 0 nan 1\n", r"line 1 \(row 0\): reward is nan, must be finite in float32"),
        ("0 0 1e39 1\n", r"reward is 1e\+39, must be finite in float32"),
        ("0 1 1 1\n", "none of the 1 rows has a known next action; require_next_action=False"),
    ],
)
def test_a_wrong_line_is_named(write, content, message):
    assert_refused(write(content), message)


def test_binary_bytes_are_refused(tmp_path):
    (tmp_path / "log.txt").write_bytes(bytes(range(256)))
    assert_refused(tmp_path / "log.txt", "must be a number|fields, must be 4")


def test_a_row_that_the_tables_exclude_is_named(write):
    path = write("0 1 1 1\n1 2 12 4\n")
    message = (
        r"line 2 \(row 1\): state 1, action 2, reward 12, next_state 4 is impossible in this env"
    )
    assert_refused(path, message, mdp=ring(None))
    assert_refused(write("0 1 2 1\n"), r"reward 2, next_state 1 is impossible", mdp=ring(None))
    # An outcome of probability 0 does not count, nor does what the log cannot tell apart.
    two = mdp_of([[[0.5, 0.5]]], [[[0, 0]]], [[[1.0, 1.0]]], [[[True, False]]], [1.0])
    assert_refused(write("0 0 1 0\n"), "may have terminated or not in this environment", mdp=two)
    one = mdp_of([[[1.0, 0.0]]], [[[0, 0]]], [[[1.0, 1.0]]], [[[True, False]]], [1.0])
    assert len(load_text(write("0 0 1 0\n"), mdp=one)) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give either mdp, or episode_end, num_states"),
        ({"mdp": 1, "episode_end": "truncated"}, "give either mdp, or episode_end"),
        ({"mdp": ring(None), "num_states": 5}, "give either mdp, or episode_end"),
        ({"episode_end": "done", **SIZES}, "must be one of terminated, truncated, got 'done'"),
        ({"episode_end": "truncated", "num_states": 5}, "give either mdp, or episode_end"),
        (
            {"episode_end": "truncated", "num_states": 5, "num_actions": 0},
            "num_actions must be at least 1, got 0",
        ),
    ],
)
def test_wrong_arguments(write, arguments, message):
    with pytest.raises(ValueError, match=message):
        load_text(write(LOG), **arguments)


def test_absent_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_text(tmp_path / "no", **SIZES, episode_end="truncated")
