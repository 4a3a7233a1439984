"""What clients can do, over every transport."""

import dataclasses
import socket
import threading

import breaking
import jax.numpy as jnp
import numpy as np
import processes
import pytest

from accel_rl import remote
from accel_rl.remote import Column, Limiter, TableSpec
from accel_rl.types import Transition

SPEC = TableSpec("t", 100, (Column("x", "f4", (2,)), Column("n", "i4")), priority_exponent=1.0)


def items(count, first=0):
    numbers = np.arange(first, first + count, dtype=np.int32)
    return {"x": np.stack([numbers, -numbers], 1).astype(np.float32), "n": numbers}


def test_items_come_back(address, connect):
    table = connect(address).table(SPEC)
    assert table.push(items(60), np.linspace(1, 2, 60)) == 60
    assert table.push(items(50, 60)) == 100
    sample = table.sample(3, 64)
    numbers = sample.columns["n"]
    assert (sample.size, sample.columns["x"].shape) == (100, (64, 2))
    np.testing.assert_array_equal(sample.columns["x"], np.stack([numbers, -numbers], 1))
    np.testing.assert_array_equal(sample.slots, numbers % 100)
    np.testing.assert_array_equal(sample.generations, np.where(numbers >= 100, 2, 1))
    again = connect(address).table("t").sample(3, 64)
    np.testing.assert_array_equal(again.slots, sample.slots)


def test_updates_change_what_is_drawn(address, connect):
    table = connect(address).table(SPEC)
    table.push(items(100))
    sample = table.sample(1, 40)
    priorities = (sample.columns["n"] == sample.columns["n"][0]).astype(np.float32)
    applied, stale = table.update(sample, priorities)
    assert (applied, stale) == (40, 0)
    rest = np.setdiff1d(np.arange(100), sample.slots).astype(np.uint32)
    ones = np.ones_like(rest)
    assert table.set_priorities(rest, ones, np.zeros(len(rest))) == (len(rest), 0)
    assert set(table.sample(2, 50).columns["n"]) == {sample.columns["n"][0]}
    table.push(items(100))
    assert table.update(sample, priorities) == (0, 40)
    assert table.stats()["stale"] == 40


def test_large_frames(address, connect):
    columns = (Column("a", "u1", (3, 84, 84)), Column("b", "f8"))
    table = connect(address).table(TableSpec("images", 256, columns, "uniform"))
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (130, 3, 84, 84), np.uint8)
    table.push([images[::-1][::-1], np.arange(130.0)])
    sample = table.sample(1, 256)
    chosen = sample.columns["b"].astype(int)
    np.testing.assert_array_equal(sample.columns["a"], images[chosen])


def test_samples_that_are_held_stay_as_they_are(address, connect):
    table = connect(address).table(SPEC)
    table.push(items(100))
    held = [table.sample(seed, 8) for seed in range(12)]
    part = table.sample(99, 8).columns["n"][2:4]
    kept = part.copy()
    for seed, sample in enumerate(held):
        np.testing.assert_array_equal(table.sample(seed, 8).slots, sample.slots)
    np.testing.assert_array_equal(part, kept)


def test_what_does_not_fit_the_schema_is_refused_here(address, connect):
    table = connect(address).table(SPEC)
    good = items(3)
    for bad, kind in (
        ({"x": good["x"]}, ValueError),
        (good | {"n": good["n"][:2]}, ValueError),
        (good | {"n": good["n"].astype(np.int64)}, TypeError),
        (good | {"x": good["x"][:, :1]}, ValueError),
        ([good["x"]], ValueError),
    ):
        with pytest.raises(kind, match=r"columns must|n must|x must"):
            table.push(bad)
    with pytest.raises(ValueError, match="priorities must"):
        table.push(good, np.ones(2))
    assert table.push(good) == 3


def test_refusals_have_types(address, connect):
    client = connect(address)
    with pytest.raises(remote.NoSuchTable):
        client.table("absent")
    table = client.table(SPEC)
    with pytest.raises(remote.TryAgain):
        table.sample(1, 1)
    for priorities in ([1, np.nan, 1], [1, -1, 1], [np.inf, 1, 1]):
        with pytest.raises(remote.RequestRefused, match="bad_priority"):
            table.push(items(3), priorities)
    with pytest.raises(remote.RequestRefused, match=r"bad_count.* 1 to 100, got 101"):
        table.push(items(101))
    with pytest.raises(remote.RequestRefused, match=r"bad_count.* 1 to 65536, got 70000"):
        table.push(items(70_000))
    with pytest.raises(ValueError, match="batch must be from 1 to 65536, got 70000"):
        table.sample(1, 70_000)
    with pytest.raises(remote.TableDiffers, match="capacity is 100, wanted 101; priority_exponent"):
        client.table(TableSpec("t", 101, SPEC.columns))
    with pytest.raises(remote.LimitReached):
        client.table(TableSpec("huge", 2**29, (Column("x", "f8", (1024,)),)))
    with pytest.raises(remote.LimitReached, match="frame_bytes allows 16,777,216"):
        client.publish("large", 1, bytes(1 << 24))
    with pytest.raises(remote.SnapshotFailed):
        client.snapshot()
    assert table.push(items(3)) == 3


def test_a_sample_waits_for_items(address, connect):
    table = connect(address).table(TableSpec("w", 10, SPEC.columns, limiter=Limiter(min_size=5)))
    other = connect(address)

    def push():
        processes.wait_until(lambda: other.stats()["waiting"])
        other.table("w").push(items(6))

    pushing = threading.Thread(target=push, daemon=True)
    pushing.start()
    assert table.sample(1, 2, wait=processes.LIMIT).size == 6
    pushing.join()
    assert table.stats()["waited"] == 1


def test_waiting_ends(address, connect):
    table = connect(address).table(TableSpec("w", 10, SPEC.columns, limiter=Limiter(min_size=5)))
    with pytest.raises(remote.TryAgain):
        table.sample(1, 2, wait=0.05)


def test_mailbox(address, connect):
    client, other = connect(address), connect(address)
    assert other.fetch("weights") is None
    client.publish("weights", 0, b"first")
    assert other.fetch("weights") == (0, b"first")
    assert other.fetch("weights", 0) is None
    large = bytes(range(256)) * 10000
    client.publish("weights", 7, large)
    assert other.fetch("weights", 0) == (7, large)
    with pytest.raises(remote.RequestRefused, match="bad_version"):
        client.publish("weights", 7, b"again")


def test_transitions_as_columns(address, connect):
    steps = Transition(
        observation={"a": jnp.zeros((4, 3)), "b": jnp.ones(4, jnp.int32)},
        action=jnp.arange(4),
        reward=jnp.ones(4),
        discount=jnp.ones(4),
        truncated=jnp.zeros(4, bool),
    )
    one = Transition(
        observation={"a": jnp.zeros(3), "b": jnp.int32(1)},
        action=jnp.int32(0),
        reward=jnp.float32(0),
        discount=jnp.float32(0),
        truncated=jnp.asarray(False),
    )
    tree = remote.TreeColumns(one)
    assert [column.name for column in tree.columns][:2] == ["observation['a']", "observation['b']"]
    table = connect(address).table(TableSpec("steps", 10, tree.columns, "uniform"))
    table.push(tree.flatten(steps))
    back = tree.unflatten(list(table.sample(5, 6).columns.values()))
    assert back.observation["a"].shape == (6, 3)
    np.testing.assert_array_equal(back.truncated, False)
    with pytest.raises(ValueError, match="items must be"):
        tree.flatten({"a": 1})


def test_prefetching(address, connect):
    table = connect(address).table(SPEC)
    table.push(items(100))
    with remote.Prefetcher(remote.ReplayClient(address), "t", range(20), 8) as ahead:
        for seed, sample in enumerate(ahead):
            np.testing.assert_array_equal(sample.slots, table.sample(seed, 8).slots)
        assert seed == 19
    with pytest.raises(remote.ConnectionLost):
        next(ahead)


def test_one_client_of_several_threads(address, connect):
    client = connect(address)
    table = client.table(SPEC)
    table.push(items(100))
    failures = []

    def work(seed):
        for k in range(50):
            sample = table.sample(seed + k, 16)
            if not np.array_equal(sample.columns["n"], sample.slots):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(1000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_pushes_are_done_once_when_the_connection_breaks(address, connect, monkeypatch):
    client = connect(address)
    table = client.table(SPEC)
    for k in range(20):
        if k % 2:
            breaking.cut(client)
        else:
            breaking.lose_next_reply(client, monkeypatch)
        table.push(items(1, k))
    assert table.stats()["inserts"] == 20
    assert client.stats()["repeated"] == 10


def test_a_server_that_comes_back(serve, connect, tmp_path):
    path, where = tmp_path / "snapshot", tmp_path / "socket"
    first = serve(host=None, unix_path=where, snapshot_path=path)
    client = connect(first.address)
    other = client.table(TableSpec("other", 4, SPEC.columns))
    table = client.table(SPEC)
    table.push(items(50))
    other.push(items(2))
    client.publish("w", 3, b"abc")
    client.snapshot()
    before = table.sample(9, 32)
    table.push(items(50))
    first.close()
    serve(host=None, unix_path=where, snapshot_path=path)
    assert other.push(items(1)) == 3  # nothing was under way
    assert table.stats()["size"] == 50
    np.testing.assert_array_equal(table.sample(9, 32).slots, before.slots)
    assert client.fetch("w") == (3, b"abc")
    assert other.stats()["size"] == 3


@pytest.mark.parametrize("reconnect", [0.0, 0.2])
def test_what_was_never_sent_is_known_not_to_be_done(serve, connect, reconnect):
    server = serve()
    client = connect(server.address, reconnect=reconnect)
    table = client.table(SPEC)
    server.close()
    if not reconnect:  # then it is not looked whether the connection stands
        with pytest.raises(remote.OutcomeUnknown):
            table.push(items(1))
    for _ in range(2):
        with pytest.raises(remote.ConnectionLost) as caught:
            table.push(items(1))
        assert not isinstance(caught.value, remote.OutcomeUnknown)


def test_a_server_in_a_process(built, connect):
    with remote.ReplayServerProcess(secret=b"s" * 16) as server:
        client = connect(server.address, b"s" * 16)
        assert client.ping(b"there") == b"there"
    assert server.process.returncode == 0
    with pytest.raises(RuntimeError, match="must have a secret"):
        remote.ReplayServerProcess("0.0.0.0")


def test_a_closed_client(address, connect):
    client = connect(address)
    client.close()
    client.close()
    with pytest.raises(remote.ConnectionLost, match="closed"):
        client.ping()


def test_an_address_of_a_family_that_is_not_here_is_passed_over(serve, monkeypatch):
    """As on a machine without IPv6, where localhost still names it first."""
    absent = (1000, socket.SOCK_STREAM, 0, "", ("::1", 1))
    found = socket.getaddrinfo

    def first(*words, **more):
        return [absent, *found(*words, **more)]

    server = serve()
    monkeypatch.setattr(socket, "getaddrinfo", first)
    with remote.ReplayClient(server.address) as client:
        assert client.ping(b"here") == b"here"
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [absent])
    with pytest.raises(OSError, match="not supported"):
        remote.ReplayClient(server.address)


def test_priorities_above_the_highest_count_as_it(serve, connect):
    """One priority of the largest number would take all draws, and every later default."""
    spec = TableSpec("t", 4, (Column("n", "i4"),), priority_exponent=1.0, max_priority=2.0)
    client = connect(serve().address)
    table = client.table(spec)
    table.push([np.arange(2, dtype=np.int32)], np.array([1, 3.4e38], np.float32))
    table.push([np.arange(1, dtype=np.int32)])
    assert table.mass().total == 1 + 2 + 2
    table.set_priorities(np.zeros(1, np.uint32), np.ones(1, np.uint32), np.array([100], np.float32))
    assert table.mass().total == 2 + 2 + 2
    assert table.stats()["capped"] == 2
    with pytest.raises(ValueError, match="max_priority must be above 0"):
        client.table(dataclasses.replace(spec, name="none", max_priority=0.0))
    with pytest.raises(remote.TableDiffers, match=r"max_priority is 2\.0, wanted inf"):
        client.table(dataclasses.replace(spec, max_priority=float("inf")))
