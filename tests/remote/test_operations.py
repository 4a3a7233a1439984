"""Tables and names can be deleted, whoever uses them meanwhile."""

import threading

import numpy as np
import pytest
from optional import needs
from processes import wait_until

from accel_rl import remote
from accel_rl.remote import Column, Limiter, TableSpec

pytestmark = needs("replay server")
COLUMNS = (Column("x", "f4"),)
ITEMS = [np.zeros(3, np.float32)]


def spec(name, **more):
    return TableSpec(name, 10, COLUMNS, **more)


def test_numbers_are_not_used_again(serve, connect):
    client, other = connect((server := serve()).address), connect(server.address)
    stale = other.table(spec("a"))
    client.table(spec("b")).push(ITEMS)
    client.delete_table("a")
    client.table(spec("c")).push(ITEMS)
    with pytest.raises(remote.NoSuchTable):
        stale.push(ITEMS)
    assert [each.name for each in client.tables()] == ["b", "c"]
    assert {name: each["size"] for name, each in server.stats()["tables"].items()} == {
        "b": 3,
        "c": 3,
    }
    assert other.table(spec("a")).push(ITEMS) == 3


def test_room_comes_back(serve, connect):
    client = connect(serve(tables=2, mailbox_names=1).address)
    for number in range(20):
        client.table(spec(f"t{number}"))
        client.table(spec("kept"))
        client.delete_table(f"t{number}")
        client.publish(f"p{number}", 2**64 - 1, b"x")
        client.delete_message(f"p{number}")
    client.publish("p0", 0, b"y")
    assert client.fetch("p0") == (0, b"y")


def test_who_waits_is_told(serve, connect):
    server = serve()
    waiting, client = connect(server.address), connect(server.address)
    table = waiting.table(spec("t", limiter=Limiter(min_size=5)))
    errors = []

    def sample():
        try:
            table.sample(1, 1, wait=60.0)
        except remote.RemoteError as error:
            errors.append(error)

    thread = threading.Thread(target=sample)
    thread.start()
    wait_until(lambda: server.stats()["waiting"])
    client.delete_table("t")
    thread.join(30.0)
    assert isinstance(errors[0], remote.NoSuchTable)
    assert server.stats()["waiting"] == 0


def test_a_snapshot_has_what_is_left(serve, connect, tmp_path):
    path = tmp_path / "snapshot"
    server = serve(snapshot_path=path)
    client = connect(server.address)
    for name in "abc":
        client.table(spec(name)).push(ITEMS)
    client.delete_table("b")
    client.snapshot()
    server.close()
    assert list(serve(snapshot_path=path).stats()["tables"]) == ["a", "c"]
