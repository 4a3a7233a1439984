"""Timing of calls, against calls that sleep for a known time."""

import threading
import time

import pytest

from accel_rl.compose import timing


def test_a_call_alone_takes_its_time():
    timed = timing.alone(lambda: time.sleep(0.004), 0.1)
    assert 0.004 <= timed.median < 0.2
    assert timed.spread >= 0


def test_calls_that_exclude_each_other_take_twice_as_long():
    lock = threading.Lock()

    def hold():
        with lock:
            time.sleep(0.005)

    one, other = timing.together(hold, hold, 0.3)
    # Locks are not fair, so that only the sum is known: what each waits is the other's time. A
    # call under way at the end counts for one side alone.
    assert 1 / one + 1 / other < 1.2 / 0.005


def test_calls_that_do_not_are_not_slowed():
    one, other = timing.together(lambda: time.sleep(0.03), lambda: time.sleep(0.03), 0.3)
    # A busy machine stretches both, but one after the other they would take the sum.
    assert 1 / one + 1 / other > 1.2 / 0.03 or max(one, other) > 0.12


def test_a_call_that_takes_longer_than_the_time_is_made_once():
    one, other = timing.together(lambda: time.sleep(0.02), lambda: None, 0.0)
    assert one >= 0.02
    assert other > 0


def test_an_error_in_either_is_raised():
    def fail():
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        timing.together(lambda: time.sleep(0.001), fail, 0.1)
