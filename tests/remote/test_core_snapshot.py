"""Snapshots from Python: the same state, and an older one where a writer is killed."""

import os
import random
import subprocess
import time

import core_tables
import numpy as np
import processes
import pytest
from core_tables import native
from table_model import Config

CONFIG = Config(500, "prioritised")
COLUMNS = [("number", "i4", ()), ("wide", "f8", (40,))]

# Goes on writing snapshots, each of a table that says which one it is, until it is killed.
WRITER = """
import sys
import numpy as np
from accel_rl.remote import _native as native

table = native.Table("table", 20000, [("number", "i4", ()), ("wide", "f8", (40,))])
for k in range(10**6):
    table.push([np.full(20000, k, np.int32), np.full((20000, 40), k, np.float64)])
    snapshot = native.Snapshot(sys.argv[1], [table])
    while not snapshot.step(1 << 16):
        pass
    snapshot.finish()
    print(k, flush=True)
"""


def pushed(table, rng, count):
    rows = [rng.integers(0, 9, count).astype(np.int32), rng.random((count, 40))]
    table.push(rows, rng.random(count).astype(np.float32))


def write(path, tables, mailbox=None):
    snapshot = native.Snapshot(str(path), tables, mailbox)
    while not snapshot.step(1):
        pass
    snapshot.finish()


def refused(path):
    """The status with which a file is refused."""
    with pytest.raises(native.Error) as caught:
        native.restore(str(path), 2**30)
    assert str(path) in caught.value.args[0]
    return core_tables.status_of(caught.value)


def test_restored_tables_go_on_as_the_written_ones(tmp_path):
    rng = np.random.default_rng(0)
    tables = [core_tables.make(CONFIG, COLUMNS, name) for name in ("one", "other")]
    for table in tables:
        pushed(table, rng, 300)
        core_tables.sample(table, 1, 64)
    mailbox = native.Mailbox(2**20, 4)
    mailbox.publish("weights", 5, b"parameters")
    snapshot = native.Snapshot(str(tmp_path / "file"), tables, mailbox)
    before = [table.stats() for table in tables]
    expected = [core_tables.sample(table, 7, 64) for table in tables]
    pushed(tables[0], rng, 400)
    while not snapshot.step(1000):
        pushed(tables[1], rng, 100)
    snapshot.finish()
    kept = native.Mailbox(2**20, 4)
    restored = native.restore(str(tmp_path / "file"), 2**30, kept)
    assert [table.name for table in restored] == ["one", "other"]
    assert kept.fetch("weights") == (5, b"parameters")
    assert kept.fetch("weights", 5) is None
    for table, stats, wanted in zip(restored, before, expected, strict=True):
        assert table.stats() == stats
        found = core_tables.sample(table, 7, 64)
        for a, b in zip(found.items, wanted.items, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(found.slots, wanted.slots)
        np.testing.assert_array_equal(found.probabilities, wanted.probabilities)


def test_files_that_are_no_whole_snapshot_are_refused(tmp_path):
    path = tmp_path / "file"
    table = core_tables.make(CONFIG, COLUMNS)
    pushed(table, np.random.default_rng(0), 300)
    write(path, [table])
    right = path.read_bytes()
    assert refused(tmp_path / "absent") == "io_error"
    path.write_bytes(b"no snapshot at all, but long enough")
    assert refused(path) == "damaged"
    for place in random.Random(0).sample(range(len(right)), 50):
        path.write_bytes(right[:place])
        assert refused(path) == "truncated"
        path.write_bytes(right[:place] + bytes([right[place] ^ 1]) + right[place + 1 :])
        assert refused(path) == "damaged"
    path.write_bytes(right)
    assert len(native.restore(str(path), 2**30)) == 1
    with pytest.raises(native.Error, match="more than 1000 bytes"):
        native.restore(str(path), 1000)


def test_one_snapshot_of_a_table_at_a_time(tmp_path):
    table = core_tables.make(CONFIG, COLUMNS)
    pushed(table, np.random.default_rng(0), 10)
    first = native.Snapshot(str(tmp_path / "one"), [table])
    with pytest.raises(native.Error, match="being written"):
        native.Snapshot(str(tmp_path / "other"), [table])
    first.abandon()
    assert os.listdir(tmp_path) == []
    write(tmp_path / "other", [table])
    assert os.listdir(tmp_path) == ["other"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "absent" / "file"
    with pytest.raises(native.Error, match=str(path)):
        native.Snapshot(str(path), [])


def test_a_killed_writer_leaves_an_older_snapshot(tmp_path):
    path, chance = tmp_path / "file", random.Random(1)
    for _ in range(3):
        with processes.start("-c", WRITER, path, stdout=subprocess.PIPE) as writer:
            finished = int(writer.stdout.readline())
            time.sleep(0.3 * chance.random())
            writer.kill()
            rest = writer.communicate()[0].split()
        finished = int(rest[-1]) if rest else finished
        (table,) = native.restore(str(path), 2**30)
        drawn = core_tables.sample(table, 0, 500)
        (number,) = np.unique(drawn.items[0])
        assert number in (finished, finished + 1)
        assert (drawn.items[1] == number).all()
        assert table.size == 20000
        assert table.stats()["inserts"] == 20000 * (number + 1)
