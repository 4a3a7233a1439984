"""Calls from Python: arrays of the caller, and what is refused with a reason."""

import core_tables
import numpy as np
import pytest
from core_tables import native
from table_model import Config

DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
COLUMNS = [("a", "i4", ()), ("b", "f4", (2,))]


def make(**settings):
    return core_tables.make(Config(8, **settings), COLUMNS)


def rows(count):
    return [np.arange(count, dtype=np.int32), np.zeros((count, 2), np.float32)]


def test_every_dtype_comes_back_as_it_went_in():
    table = core_tables.make(Config(8), [(code, code, (3,)) for code in DTYPES])
    given = [np.arange(24).reshape(8, 3).astype(code) for code in DTYPES]
    table.push(given)
    arrays = native.Batch(table, 16)
    table.sample(0, arrays)
    assert list(arrays.columns) == list(DTYPES)
    for code, column in zip(DTYPES, given, strict=True):
        assert arrays.columns[code].dtype == np.dtype(code)
        np.testing.assert_array_equal(arrays.columns[code], column[arrays.slots])


def test_samples_go_to_the_same_arrays_or_the_callers():
    table = make()
    table.push(rows(8))
    mine = [np.empty(4, np.int32), np.empty((4, 2), np.float32)]
    arrays = native.Batch(table, 4, mine)
    assert len(arrays) == 4
    assert arrays.columns["a"] is mine[0]
    before = arrays.slots
    for seed in range(3):
        table.sample(seed, arrays)
        assert arrays.slots is before
        np.testing.assert_array_equal(mine[0], before)
    assert (arrays.size, arrays.total) == (8, 8.0)


def test_arrays_outlive_what_made_them():
    table = make()
    table.push(rows(8))
    arrays = native.Batch(table, 4)
    table.sample(0, arrays)
    slots = arrays.slots
    wanted = slots.copy()
    del arrays, table
    np.testing.assert_array_equal(slots, wanted)


@pytest.mark.parametrize(
    ("columns", "priorities", "error", "reason"),
    [
        (rows(2)[:1], None, native.Error, "columns must be 2 arrays, got 1"),
        ([rows(2)[0], rows(3)[1]], None, native.Error, "column b must have 2 items"),
        ([rows(2)[0], np.zeros((2, 3), np.float32)], None, native.Error, "items of 8 bytes"),
        ([rows(2)[0].astype(np.int64), rows(2)[1]], None, TypeError, "a must be of dtype i4"),
        ([rows(2)[0].astype(">i4"), rows(2)[1]], None, TypeError, "a must be of dtype i4"),
        ([rows(4)[0][::2], rows(2)[1]], None, ValueError, "contiguous"),
        (rows(2), np.zeros(3, np.float32), native.Error, "priorities must be 2, got 3"),
        (rows(2), np.zeros(2), TypeError, "priorities must be of dtype f4"),
        (rows(2), np.float32([1, np.nan]), native.Error, "finite and at least 0"),
        (rows(0), None, native.Error, "from 1 to 8, got 0"),
        (rows(9), None, native.Error, "from 1 to 8, got 9"),
    ],
)
def test_wrong_pushes_are_refused_and_change_nothing(columns, priorities, error, reason):
    table = make()
    with pytest.raises(error, match=reason):
        table.push(columns, priorities)
    assert table.size == table.stats()["inserts"] == 0


def test_wrong_updates_are_refused():
    table = make()
    table.push(rows(8))
    slots, ones = np.arange(3, dtype=np.uint32), np.ones(3, np.float32)
    with pytest.raises(native.Error, match="equally many"):
        table.update(slots, slots, ones[:2])
    with pytest.raises(native.Error, match="slots must be below 8"):
        table.update(slots + np.uint32(6), slots, ones)
    with pytest.raises(TypeError, match="slots must be of dtype u4"):
        table.update(slots.astype(np.int64), slots, ones)
    assert table.update(slots, np.ones(3, np.uint32), 4 * ones) == (3, 0)
    assert table.total > 8


def test_wrong_batches_are_refused():
    table, other = make(), core_tables.make(Config(8), COLUMNS[:1])
    with pytest.raises(ValueError, match="at least 1"):
        native.Batch(table, 0)
    with pytest.raises(ValueError, match="b must have 4 rows of 8 bytes"):
        native.Batch(table, 4, [np.empty(4, np.int32), np.empty((4, 3), np.float32)])
    table.push(rows(8))
    with pytest.raises(ValueError, match="other columns"):
        table.sample(0, native.Batch(other, 4))
    constant = np.empty(4, np.int32)
    constant.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        native.Batch(table, 4, [constant, np.empty((4, 2), np.float32)])


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"capacity": 0}, "capacity must be from 1 to 2\\^30, got 0"),
        ({"sampler": "best"}, "sampler must be uniform, prioritised or amper_fr, got best"),
        ({"priority_exponent": -1.0}, "priority_exponent must be from 0 to 16"),
        ({"min_size": 9}, "min_size must be from 1 to the capacity, got 9"),
        ({"ratio": (0.0, 0.0, 1.0)}, "samples_per_insert must be positive"),
        ({"ratio": (1.0, 2.0, 1.0)}, "min_diff must be at most max_diff"),
        ({"groups": 3}, "groups must be from 4 to 256, got 3"),
        ({"csp_ratio": 0.0}, "csp_ratio must be above 0 and at most 1"),
        ({"columns": []}, "columns must be from 1 to 256, got 0"),
        ({"columns": [("a", "c8", ())]}, "column a: there is no dtype c8"),
        ({"columns": [("a", "f4", ()), ("a", "f4", ())]}, "column a is there twice"),
        ({"columns": [("a", "f4", (2**20, 2**20))]}, "1 to 2\\^30 bytes"),
        ({"name": ""}, "name must be 1 to 255 printable bytes"),
    ],
)
def test_wrong_tables_are_refused(settings, reason):
    with pytest.raises(native.Error, match=reason):
        native.Table(**{"name": "table", "capacity": 8, "columns": COLUMNS, **settings})


def test_mailbox_versions_grow():
    mailbox = native.Mailbox(10, 1)
    mailbox.publish("weights", 0, b"first")
    with pytest.raises(native.Error, match="bad_version"):
        mailbox.publish("weights", 0, b"second")
    with pytest.raises(native.Error, match="limit"):
        mailbox.publish("weights", 1, b"longer than that")
    with pytest.raises(native.Error, match="limit"):
        mailbox.publish("others", 1, b"")
    assert mailbox.fetch("weights") == (0, b"first")
    assert mailbox.fetch("others") is None
