"""Recovery of a server that was killed, or whose files are damaged."""

import threading
import time

import numpy as np
import pytest
from processes import LIMIT, wait_until

from accel_rl import remote
from accel_rl.remote import Column, TableSpec

SPEC = TableSpec("t", 1 << 16, (Column("n", "i8"),), sampler="uniform")
INTERVAL = 0.02  # seconds


def pushed(table, first, count):
    """Push consecutive numbers."""
    table.push([np.arange(first, first + count)])


def held(table):
    """Numbers that a table holds, by slot: a sample so large that it misses none.

    The chance that one of n items is not among 64 n draws is below n exp(-64).
    """
    found = {}
    size = table.stats()["size"]
    for seed in range(64):
        drawn = table.sample(seed, size)
        found.update(zip(drawn.slots.tolist(), drawn.columns["n"].tolist(), strict=True))
    assert len(found) == size
    return np.array([found[slot] for slot in range(size)])


def test_a_log_has_what_no_snapshot_has(serve, connect, tmp_path):
    where = {"snapshot_path": tmp_path / "snapshot", "durability": "log"}
    server = serve(**where)
    pushed(connect(server.address).table(SPEC), 0, 100)
    server.close()
    server = serve(**where)
    table = connect(server.address).table(SPEC)
    np.testing.assert_array_equal(held(table), np.arange(100))
    assert server.stats()["log"] == {"bytes": pytest.approx(20_000, rel=1), "trouble": ""}
    server.snapshot()
    pushed(table, 100, 10)
    server.close()
    assert serve(snapshot_path=tmp_path / "snapshot").stats()["tables"]["t"]["size"] == 110


def test_an_older_snapshot_takes_the_place_of_a_damaged_one(serve, connect, tmp_path):
    where = {"snapshot_path": tmp_path / "snapshot", "durability": "log", "snapshots": 2}
    server = serve(**where)
    table = connect(server.address).table(SPEC)
    for first in (0, 10):
        pushed(table, first, 10)
        server.snapshot()
    server.close()
    damaged = bytearray((tmp_path / "snapshot").read_bytes())
    damaged[30] ^= 1
    (tmp_path / "snapshot").write_bytes(damaged)
    with pytest.warns(
        RuntimeWarning, match=r"snapshot: the checksum of a block.*snapshot\.damaged"
    ):
        server = serve(**where)
    np.testing.assert_array_equal(held(connect(server.address).table(SPEC)), np.arange(20))
    assert (tmp_path / "snapshot.damaged").read_bytes() == damaged


def test_what_kills_cost(built, connect, tmp_path):
    """A client goes on in its session: no item twice, and of those before a kill few lost."""
    where = {"host": None, "unix_path": tmp_path / "socket", "snapshot_path": tmp_path / "snapshot"}
    where |= {"durability": "log", "log_ms": round(INTERVAL * 1000), "log_bytes": 1 << 16}
    server = remote.ReplayServerProcess(**where)
    client = connect(server.address, reconnect=LIMIT)
    table, session = client.table(SPEC), client.session
    answered = []  # when each push was
    going, errors = True, []

    def push():
        try:
            while going and len(answered) < SPEC.capacity // 4:
                pushed(table, 3 * len(answered), 3)
                answered.append(time.monotonic())
                time.sleep(0.0005)  # so that the table does not become full
        except Exception as error:
            errors.append(error)

    pushing = threading.Thread(target=push)
    pushing.start()
    kills = []
    try:
        for _ in range(3):
            enough = len(answered) + 200
            wait_until(lambda enough=enough: len(answered) >= enough or errors)
            time.sleep(10 * INTERVAL)  # or the table is lost, too
            server.process.kill()
            kills.append(time.monotonic())
            server.close()
            server = remote.ReplayServerProcess(**where)
        enough = len(answered) + 50
        wait_until(lambda enough=enough: len(answered) >= enough or errors)
        going = False
        pushing.join(LIMIT)
        assert not errors
        assert client.session == session
        numbers = held(table)
        assert (np.diff(numbers) > 0).all()  # in order, and none twice
        missing = np.setdiff1d(np.arange(3 * len(answered)), numbers) // 3
        gaps = np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1)
        assert len(gaps) <= len(kills)
        # What was answered earlier before a kill than a multiple of the interval is there.
        for number in missing:
            before = [kill - answered[number] for kill in kills]
            assert min(abs(seconds) for seconds in before) < 25 * INTERVAL
    finally:
        going = False
        server.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"durability": "log"}, "durability 'log' takes a snapshot_path"),
        ({"durability": "snapshot"}, "durability 'snapshot' takes a snapshot_path"),
        ({"durability": "fsync"}, "durability must be one of .*, got 'fsync'"),
        ({"durability": "none", "snapshot_path": "x"}, "durability 'none' takes no snapshot_path"),
        ({"log": 1}, "a limit must be one of"),
    ],
)
def test_durability_and_path_fit(serve, settings, message):
    with pytest.raises(ValueError, match=message):
        serve(**settings)
