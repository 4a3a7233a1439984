"""When the steps of a program happen: segments cover a training once, in either phase."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_rl.train import Schedule, segments

schedules = st.builds(
    Schedule,
    num_envs=st.integers(1, 9),
    rollout=st.integers(1, 5),
    learning_starts=st.integers(0, 300),
)


@given(schedules, st.integers(1, 2000), st.integers(1, 400))
def test_segments(schedule, more, period):
    steps = schedule.warmup * schedule.steps + more
    plan = segments(schedule, steps, period)
    lengths = {
        learns: [length for length, learning in plan if learning == learns]
        for learns in (False, True)
    }
    assert [learning for _, learning in plan] == sorted(learning for _, learning in plan)
    # As many iterations as the steps need, and no more; learning starts once there are enough.
    total = sum(lengths[False]) + sum(lengths[True])
    assert (total - 1) * schedule.steps < steps <= total * schedule.steps
    collected = sum(lengths[False]) * schedule.steps
    assert collected >= schedule.learning_starts
    assert collected - schedule.steps < max(schedule.learning_starts, 1)
    # All of a period's length but the last of each phase.
    for phase in lengths.values():
        for length in phase[:-1]:
            assert (length - 1) * schedule.steps < period <= length * schedule.steps
        assert all(0 < length <= -(-period // schedule.steps) for length in phase)


@given(schedules, st.integers(1, 500), st.integers(1, 500), st.integers(1, 100))
def test_a_longer_training_begins_with_the_shorter_ones_segments(schedule, more, extra, period):
    """So a training that is resumed with more steps goes on at the same boundaries."""
    steps = schedule.warmup * schedule.steps + more
    short, long = (segments(schedule, each, period) for each in (steps, steps + extra))
    assert long[: len(short) - 1] == short[:-1]
    (length, learning), (longer, same) = short[-1], long[len(short) - 1]
    assert (length <= longer, learning) == (True, same)


def test_steps_are_counted_in_int32():
    schedule = Schedule(num_envs=4, learning_starts=4)
    assert len(segments(schedule, 2**31 - 4, 2**20)) > 1
    with pytest.raises(ValueError, match="steps must be at most 2,147,483,647"):
        segments(schedule, 2**31 - 3, 2**20)


def test_by_hand():
    plan = segments(Schedule(num_envs=4, rollout=2, learning_starts=20), 100, 30)
    assert plan == [(3, False), (4, True), (4, True), (2, True)]
    assert segments(Schedule(learning_starts=0), 3, 2) == [(2, True), (1, True)]
    assert list(itertools.accumulate(n for n, _ in plan))[-1] * 8 == 104


@pytest.mark.parametrize(
    ("field", "value", "error", "match"),
    [
        ("num_envs", 0, ValueError, "num_envs must be at least 1, got 0"),
        ("rollout", -1, ValueError, "rollout must be at least 1, got -1"),
        ("updates", 0, ValueError, "updates must be at least 1, got 0"),
        ("learning_starts", -5, ValueError, "learning_starts must be at least 0, got -5"),
        ("policy_lag", -1, ValueError, "policy_lag must be at least 0"),
        ("priority_lag", 1.0, TypeError, "priority_lag must be an int, got 1.0"),
        ("num_envs", True, TypeError, "num_envs must be an int, got True"),
    ],
)
def test_bad_schedules(field, value, error, match):
    with pytest.raises(error, match=match):
        Schedule(**{field: value})


@pytest.mark.parametrize(
    ("steps", "period", "match"),
    [
        (0, 1, "steps must be at least 1, got 0"),
        (2000, 0, "period must be at least 1, got 0"),
        (1000, 10, r"steps must be more than learning_starts \(1000\), got 1000"),
    ],
)
def test_bad_segments(steps, period, match):
    with pytest.raises(ValueError, match=match):
        segments(Schedule(), steps, period)
