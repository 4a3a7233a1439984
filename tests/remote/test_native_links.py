"""Links of the native module: who waits in one hears of signals and of servers that have gone."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import quick

from accel_rl import remote
from accel_rl.remote import Column, TableSpec

SECRET = b"0123456789abcdef"
SPEC = TableSpec("t", 64, (Column("x", "i4"),))
LONG = 60.0  # seconds that a test never waits

# Waits for items that never come, until it is interrupted.
WAITING = """
import sys
from accel_rl import remote
path, kind = sys.argv[1:]
server = remote.ReplayServer(None, shm_path=path) if kind == "embedded" else None
client = remote.ReplayClient(server or f"shm:{path}" + kind, reconnect=0.0)
table = client.table(remote.TableSpec("t", 64, (remote.Column("x", "i4"),)))
try:
    print("waits", flush=True)
    table.sample(1, 4, wait=60.0)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def waiting(path, kind):
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(path), kind], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "waits\n"
    time.sleep(0.3)  # until it has asked
    return process


@pytest.mark.parametrize("kind", quick.only(["", "embedded"], ["", "?busy=1", "embedded"]))
def test_a_wait_is_interrupted(serve, tmp_path, kind):
    if kind != "embedded":
        serve(host=None, shm_path=tmp_path / "socket")
    process = waiting(tmp_path / "socket", kind)
    try:
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[0] == "interrupted\n"
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("kind", quick.only(["?busy=1"], ["", "?busy=1"]))
def test_a_client_that_is_killed(serve, connect, tmp_path, kind):
    server = serve(host=None, shm_path=tmp_path / "socket")
    good = connect(server.address)
    process = waiting(tmp_path / "socket", kind)
    assert server.stats()["open"] == 2
    process.kill()
    process.communicate()
    end = time.monotonic() + 20
    while server.stats()["open"] > 1:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert server.stats()["waiting"] == 0
    assert good.ping(b"still") == b"still"


@pytest.mark.parametrize("kind", ["shm", "busy", "embedded"])
def test_a_server_that_closes_while_a_client_waits(serve, connect, tmp_path, kind):
    server = serve(host=None, shm_path=tmp_path / "socket")
    address = {"shm": server.address, "busy": server.address + "?busy=1", "embedded": server}[kind]
    table = connect(address, reconnect=0.0).table(SPEC)
    timer = threading.Timer(0.2, server.close)
    timer.start()
    begin = time.monotonic()
    with pytest.raises(remote.ConnectionLost):
        table.sample(1, 4, wait=LONG)
    assert time.monotonic() - begin < LONG / 2
    timer.join()
    with pytest.raises(remote.ConnectionLost, match="no replay memory server"):
        connect(address)


@pytest.mark.parametrize("busy", quick.only([""], ["", "?busy=1"]))
def test_a_server_that_is_killed_while_a_client_waits(built, connect, tmp_path, busy):
    with remote.ReplayServerProcess(None, shm_path=tmp_path / "socket") as server:
        table = connect(server.address + busy, reconnect=0.0).table(SPEC)
        timer = threading.Timer(0.2, os.kill, (server.process.pid, signal.SIGKILL))
        timer.start()
        begin = time.monotonic()
        with pytest.raises(remote.ConnectionLost):
            table.sample(1, 4, wait=LONG)
        assert time.monotonic() - begin < LONG / 2
        timer.join()


def test_no_reply_in_time(serve, connect, tmp_path):
    server = serve(host=None, shm_path=tmp_path / "socket")
    for address in (server.address, server):
        table = connect(address, timeout=0.2, reconnect=0.0).table(SPEC)
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
    server = serve(host=None)
    with pytest.raises(ValueError, match="has no address"):
        server.address  # noqa: B018
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
    while not server.stats()["waiting"]:
        time.sleep(0.01)
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
    with pytest.raises(ValueError, match="batch from 1 to 1048576, got 0"):
        remote.probe(server, sample=("t", 0), secret=SECRET)
    with pytest.raises(ValueError, match="TLS is not probed"):
        remote.probe("tls://127.0.0.1:1")
    for count in (63, (64 << 20) + 1):
        with pytest.raises(ValueError, match="frame_bytes must be from 64 to"):
            remote.probe(server, frame_bytes=count, secret=SECRET)
