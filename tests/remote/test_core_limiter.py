"""The limiter's bounds hold after whatever is let through, and someone is always let through."""

import core_tables
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from table_model import Config, Refused

CAPACITY = 30


@st.composite
def limits(draw):
    """Samples per insert, least and most difference, and items without which nothing is drawn."""
    per_insert = draw(st.sampled_from([0.25, 1.0, 1.5, 8.0]))
    least = draw(st.floats(-50, 50))
    most = least + draw(st.floats(0, 100))
    return (per_insert, least, most), draw(st.integers(1, CAPACITY))


CALLS = st.lists(st.tuples(st.booleans(), st.integers(1, 10)), max_size=60)


def attempt(table, is_push, count):
    """Whether it was let through."""
    try:
        if is_push:
            core_tables.call(table.push, [np.zeros(count, np.int32)])
        else:
            core_tables.sample(table, 0, count)
    except Refused as refusal:
        if str(refusal) != "retry":
            raise
        return False
    return True


def opened(ratio, min_size):
    config = Config(CAPACITY, "uniform", min_size=min_size, ratio=ratio)
    return core_tables.make(config, [("number", "i4", ())])


@settings(max_examples=200, deadline=None)
@given(limits(), CALLS)
def test_bounds_hold(limit, calls):
    (per_insert, least, most), min_size = limit
    table, inserts, samples = opened(*limit), 0, 0
    for is_push, count in calls:
        size = min(inserts, CAPACITY)
        asked = table.can_push(count) if is_push else table.can_sample(count)
        done = attempt(table, is_push, count)
        assert done == asked
        if is_push:
            after = (inserts + count) * per_insert - samples
            assert done == (size + count <= min_size or after <= most)
        else:
            after = inserts * per_insert - (samples + count)
            assert done == (size >= min_size and after >= least)
        inserts += count * (done and is_push)
        samples += count * (done and not is_push)
        found = table.stats()
        assert (found["inserts"], found["samples"], found["refused"]) == (inserts, samples, 0)


@settings(max_examples=100, deadline=None)
@given(limits(), CALLS, st.integers(1, 10), st.integers(1, 10))
def test_someone_can_go_on(limit, calls, push, batch):
    """Where the bounds leave room for one push and one sample, not both have to wait for ever."""
    (per_insert, least, most), min_size = limit
    room = push * per_insert + batch
    table = opened((per_insert, least, max(most, least + room)), min_size)
    for is_push, count in calls:
        attempt(table, is_push, count)
    assert table.can_push(push) or table.can_sample(batch) or table.size < min_size


@settings(max_examples=50, deadline=None)
@given(st.integers(1, CAPACITY), CALLS)
def test_without_a_ratio_only_the_size_counts(min_size, calls):
    table = opened(None, min_size)
    for is_push, count in calls:
        size = table.size
        assert attempt(table, is_push, count) == (is_push or size >= min_size)
