"""Links of the native module: who waits in one hears of signals and of servers that have gone."""

import contextlib
import signal
import subprocess
import threading

import numpy as np
import processes
import pytest
import quick

from accel_rl import remote
from accel_rl.remote import Column, TableSpec

SECRET = b"0123456789abcdef"
SPEC = TableSpec("t", 64, (Column("x", "i4"),))
LONG = 2 * processes.LIMIT  # seconds that a test never waits

# Waits for items that never come, and says so, until it is interrupted.
WAITING = """
import sys, threading, time
from accel_rl import remote
path, kind, long = sys.argv[1:]
server = remote.ReplayServer(None, shm_path=path) if kind == "embedded" else None
client = remote.ReplayClient(server or f"shm:{path}" + kind, reconnect=0.0)
table = client.table(remote.TableSpec("t", 64, (remote.Column("x", "i4"),)))

def tell():
    with remote.ReplayClient(server or f"shm:{path}") as watching:
        while not watching.stats()["waiting"]:
            time.sleep(0.01)
    print("waits", flush=True)

threading.Thread(target=tell, daemon=True).start()
try:
    table.sample(1, 4, wait=float(long))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@contextlib.contextmanager
def waiting(path, kind):
    """A process that waits at a server."""
    words = ("-c", WAITING, path, kind, LONG)
    with processes.start(*words, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "waits\n"
        yield process


def once_waiting(client, call):
    """Start a thread that makes a call once somebody waits at the client's server."""

    def run():
        processes.wait_until(lambda: client.stats()["waiting"])
        call()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("kind", quick.only(["", "embedded"], ["", "?busy=1", "embedded"]))
def test_a_wait_is_interrupted(serve, tmp_path, kind):
    if kind != "embedded":
        serve(host=None, shm_path=tmp_path / "socket")
    with waiting(tmp_path / "socket", kind) as process:
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=processes.LIMIT)[0] == "interrupted\n"


@pytest.mark.parametrize("kind", quick.only(["?busy=1"], ["", "?busy=1"]))
def test_a_client_that_is_killed(serve, connect, tmp_path, kind):
    server = serve(host=None, shm_path=tmp_path / "socket")
    good = connect(server.address)
    with waiting(tmp_path / "socket", kind):
        processes.wait_until(lambda: server.stats()["open"] == 2)
    processes.wait_until(lambda: server.stats()["open"] == 1)
    assert server.stats()["waiting"] == 0
    assert good.ping(b"still") == b"still"


@pytest.mark.parametrize("kind", ["shm", "busy", "embedded"])
def test_a_server_that_closes_while_a_client_waits(serve, connect, tmp_path, kind):
    server = serve(host=None, shm_path=tmp_path / "socket")
    address = {"shm": server.address, "busy": server.address + "?busy=1", "embedded": server}[kind]
    table = connect(address, reconnect=0.0).table(SPEC)
    closing = once_waiting(server, server.close)
    with pytest.raises(remote.ConnectionLost):
        table.sample(1, 4, wait=LONG)
    closing.join()
    with pytest.raises(remote.ConnectionLost, match="no replay server"):
        connect(address)


@pytest.mark.parametrize("busy", quick.only([""], ["", "?busy=1"]))
def test_a_server_that_is_killed_while_a_client_waits(built, connect, tmp_path, busy):
    with remote.ReplayServerProcess(None, shm_path=tmp_path / "socket") as server:
        table = connect(server.address + busy, reconnect=0.0).table(SPEC)
        killing = once_waiting(connect(server.address), server.process.kill)
        with pytest.raises(remote.ConnectionLost):
            table.sample(1, 4, wait=LONG)
        killing.join()


def test_no_reply_in_time(serve, connect, tmp_path):
    server = serve(host=None, shm_path=tmp_path / "socket")
    for address in (server.address, server):
        table = connect(address, reconnect=0.0).table(SPEC)
        table._client._timeout = -1.0  # less than what it lets the server wait
        with pytest.raises(remote.ConnectionLost, match="no reply within"):
            table.sample(1, 4, wait=1.1)


@pytest.mark.parametrize("kind", ["shm", "embedded"])
def test_secrets(serve, connect, tmp_path, kind):
    server = serve(host=None, shm_path=tmp_path / "socket", secret=SECRET)
    address = server.address if kind == "shm" else server
    for wrong in (None, SECRET[::-1]):
        with pytest.raises(remote.AuthenticationFailed):
            connect(address, wrong)
    assert connect(address, SECRET).ping(b"x") == b"x"


def test_every_way_to_one_server_draws_the_same(serve, connect, tmp_path):
    server = serve(unix_path=tmp_path / "unix", shm_path=tmp_path / "shm", ring_bytes=4096)
    clients = [connect(where) for where in [*server.addresses, server]]
    columns = (Column("image", "u1", (50, 50)), Column("number", "i4"))
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (40, 50, 50), np.uint8)
    for number, client in enumerate(clients):
        table = client.table(TableSpec("t", 40, columns))
        many = slice(10 * number, 10 * number + 10)
        table.push([images[many], np.arange(40, dtype=np.int32)[many]], rng.random(10))
    drawn = [client.table("t").sample(9, 32) for client in clients]
    np.testing.assert_array_equal(drawn[0].columns["image"], images[drawn[0].columns["number"]])
    for each in drawn[1:]:
        for name in ("slots", "generations", "probabilities"):
            np.testing.assert_array_equal(getattr(each, name), getattr(drawn[0], name))
        for name, column in drawn[0].columns.items():
            np.testing.assert_array_equal(each.columns[name], column)


def test_a_server_without_an_address(serve, tmp_path):
    assert serve(host=None).addresses == []
    with pytest.raises(RuntimeError, match="must say where to listen"):
        remote.ReplayServerProcess(None)
    with pytest.raises(ValueError, match="ring_bytes must be a power of two"):
        serve(host=None, shm_path=tmp_path / "socket", ring_bytes=5000)


def test_a_link_is_for_one_thread(built, serve, connect):
    server = serve(host=None)
    client = connect(server, reconnect=0.0)
    table = client.table(SPEC)
    link = client._connection.link._link
    thread = threading.Thread(target=table.sample, args=(1, 4), kwargs={"wait": LONG})
    thread.start()
    processes.wait_until(lambda: server.stats()["waiting"])
    for call in (link.close, lambda: link.exchange([bytes(64)], bytearray(64), 1000)):
        with pytest.raises(built.Error, match="in use by a thread"):
            call()
    connect(server).table(SPEC).push([np.arange(4, dtype=np.int32)])
    thread.join()


def test_what_a_link_refuses(serve):
    server = serve(host=None)
    link = server.open_link()
    link.close()
    link.close()
    with pytest.raises(ConnectionResetError):
        link.exchange([bytes(64)], bytearray(64), 1000)
    with pytest.raises(TypeError):
        server.open_link().exchange(["text"], bytearray(64), 1000)
    with pytest.raises(BufferError):
        server.open_link().exchange([bytes(64)], bytes(64), 1000)


@pytest.mark.parametrize("busy", [False, True])
def test_round_trips_are_measured(serve, tmp_path, busy):
    server = serve(unix_path=tmp_path / "unix", shm_path=tmp_path / "shm", secret=SECRET)
    for where in [*server.addresses, server]:
        before = server.stats()["requests"]
        times = remote.probe(where, rounds=50, frame_bytes=200, busy=busy, secret=SECRET)
        assert times.shape == (50,)
        assert (times > 0).all()
        assert (
            server.stats()["requests"] == before + 54
        )  # hello, proof, one ping and bye are not timed
    with pytest.raises(ValueError, match="rounds must be at least 1, got 0"):
        remote.probe(server, rounds=0)
    table = remote.TableSpec("t", 8, (remote.Column("x", "i4"),))
    with remote.ReplayClient(server, SECRET) as client:
        client.table(table).push([np.arange(8, dtype=np.int32)])
    assert (remote.probe(server, sample=("t", 4), rounds=5, secret=SECRET) > 0).all()
    with pytest.raises(remote.NoSuchTable):
        remote.probe(server, sample=("absent", 4), secret=SECRET)
    with pytest.raises(remote.RequestRefused):
        remote.probe(server, sample=("t", 1 << 20), secret=SECRET)
    with pytest.raises(ValueError, match="batch must be from 1 to 1048576, got 0"):
        remote.probe(server, sample=("t", 0), secret=SECRET)
    with pytest.raises(ValueError, match="TLS is not probed"):
        remote.probe("tls://127.0.0.1:1")
    for count in (63, (64 << 20) + 1):
        with pytest.raises(ValueError, match="frame_bytes must be from 64 to"):
            remote.probe(server, frame_bytes=count, secret=SECRET)
