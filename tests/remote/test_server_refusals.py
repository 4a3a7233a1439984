"""A server among clients that are wrong, slow or hostile: they are refused and counted, no more."""

import contextlib
import fcntl
import json
import os
import pathlib
import socket
import stat
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from checksums import checked
from processes import LIMIT, start, wait_until

from accel_rl import remote
from accel_rl.remote import Column, TableSpec, wire
from accel_rl.remote.links import parse_address
from accel_rl.remote.wire import Op

SECRET = b"0123456789abcdef"
SPEC = TableSpec("t", 4096, (Column("x", "f4", (256,)),), "uniform")


def dial(address):
    where = parse_address(address)
    raw = socket.create_connection((where.host, where.port), timeout=LIMIT)
    raw.settimeout(LIMIT)
    return raw


def hello(raw):
    raw.sendall(wire.request_frame(Op.HELLO, fixed=bytes(24)))
    return wire.read_header(raw.recv(64), 64).session


def status_of_reply(raw):
    data = raw.recv(4096)
    return wire.read_header(data, 4096).status if data else None


def at_its_end(raw):
    try:
        while raw.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


def test_wrong_secrets(serve, connect):
    server = serve(secret=SECRET)
    for secret in (None, b"0123456789abcdeF"):
        with pytest.raises(remote.AuthenticationFailed):
            connect(server.address, secret)
    assert server.stats()["unauthenticated"] == 1
    assert connect(server.address, SECRET).ping(b"x") == b"x"


def test_a_server_that_should_know_the_secret(serve, connect):
    with pytest.raises(remote.AuthenticationFailed, match="does not ask"):
        connect(serve().address, SECRET)


def test_others_may_only_come_with_a_secret(serve):
    for host in ("0.0.0.0", "::"):
        with pytest.raises(ValueError, match=r"must have a secret .*--secret-file"):
            serve(host=host)
    with pytest.raises(ValueError, match="secret must have 16 bytes"):
        serve(secret=b"short")
    with pytest.raises(ValueError, match="address in numbers"):
        serve(host="localhost")
    assert serve(host="0.0.0.0", secret=SECRET).stats()["open"] == 0


def test_unix_sockets_are_their_owners(serve, tmp_path):
    path = tmp_path / "socket"
    server = serve(host=None, unix_path=path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with pytest.raises(ValueError, match="in use"):
        serve(host=None, unix_path=path)
    server.close()
    assert not path.exists()
    path.write_text("not a socket")
    with pytest.raises(ValueError, match="in use"):
        serve(host=None, unix_path=path)
    assert path.read_text() == "not a socket"


def test_limits_are_those_of_the_page(built):
    page = pathlib.Path(__file__).parents[2] / "docs" / "replay-server.md"
    rows = [line.split("|") for line in page.read_text().splitlines() if line.startswith("| `")]
    said = {row[1].strip(" `"): int(row[2].replace(",", "")) for row in rows}
    settings = built.ServerSettings()
    values = {name: getattr(settings, name) for name in dir(settings) if name[0] != "_"}
    assert said == {name: value for name, value in values.items() if type(value) is int}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"conns": 3}, "a limit must be one of batch, buffer_bytes, .* got 'conns'"),
        ({"connections": -1}, "connections must be a whole number from 0, got -1"),
        ({"connections": 2**32}, "connections must be a whole number from 0, got 4294967296"),
        ({"frame_ms": "5 s"}, "frame_ms must be a whole number from 0, got '5 s'"),
    ],
)
def test_limits_that_are_none_are_refused(serve, limits, message):
    with pytest.raises(ValueError, match=message):
        serve(**limits)


def test_one_of_many_servers_takes_a_stale_path(serve, connect, tmp_path):
    path = tmp_path / "socket"

    def take(_):
        with contextlib.suppress(ValueError):  # the path is in use
            return serve(host=None, unix_path=path)

    for _ in range(10):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        with ThreadPoolExecutor(8) as pool:
            [server] = filter(None, pool.map(take, range(8)))
        connect(server.address).ping()
        server.close()
        assert not path.exists()


def test_a_folder_that_somebody_has_locked_is_not_waited_for_without_end(serve, connect, tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        server = serve(host=None, unix_path=tmp_path / "socket")
        connect(server.address).ping()
        server.close()
        assert not (tmp_path / "socket").exists()
    finally:
        os.close(folder)


def test_a_path_of_another_server_stays(serve, connect, tmp_path):
    path = tmp_path / "socket"
    first = serve(host=None, unix_path=path)
    path.unlink()
    second = serve(host=None, unix_path=path)
    first.close()
    connect(second.address).ping()


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda f: b"GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n" + bytes(64), None),
        (lambda f: f[:4] + b"\x02" + f[5:], 102),
        (lambda f: f[:32] + struct.pack("<I", 2**31) + f[36:], 104),
        (lambda f: f[:32] + struct.pack("<I", 12) + f[36:], 100),
        (lambda f: f[:40] + b"\x01" + f[41:], 105),
        (lambda f: f[:8] + b"\x01" + f[9:36] + bytes(4) + f[40:], 105),
    ],
)
def test_what_is_no_frame(serve, connect, change, status):
    server = serve()
    good = connect(server.address)
    raw = dial(server.address)
    session = hello(raw)
    frame = checked(wire.request_frame(Op.PING, session=session))
    raw.sendall(change(frame))
    assert status_of_reply(raw) == status
    assert at_its_end(raw)
    assert server.stats()["malformed"] == 1
    assert good.ping(b"still") == b"still"
    raw.close()


def test_before_the_session_stands(serve):
    server = serve()
    for frame, status in (
        (wire.request_frame(Op.PING), 106),
        (wire.request_frame(Op.PING, sections=(bytes(8192),)), 104),
        (wire.request_frame(Op.AUTH, sections=(bytes(32),)), 106),
    ):
        with dial(server.address) as raw:
            raw.sendall(frame)
            assert status_of_reply(raw) == status
            assert at_its_end(raw)


def test_half_open_connections_are_dropped(serve, connect):
    server = serve(handshake_ms=1000, frame_ms=1000)
    good = connect(server.address)
    with dial(server.address) as silent, dial(server.address) as stuck:
        session = hello(stuck)
        stuck.sendall(wire.request_frame(Op.PING, session=session)[:50])
        assert at_its_end(silent)
        assert at_its_end(stuck)
    assert server.stats()["timed_out"] == 2
    assert good.ping() == b""


def test_slow_readers_hold_up_nobody(serve, connect):
    server = serve(write_ms=300)
    good = connect(server.address)
    table = good.table(SPEC)
    table.push([np.zeros((4096, 256), np.float32)])
    with dial(server.address) as slow:
        session = hello(slow)
        fixed = struct.pack("<QI", 1, 4096)
        asking = wire.request_frame(Op.SAMPLE, session=session, table=table.number, fixed=fixed)
        for _ in range(20):
            slow.sendall(asking)
        for _ in range(5):
            assert good.ping(b"quick") == b"quick"
        wait_until(lambda: server.stats()["slow"] == 1)
    wait_until(lambda: server.stats()["open"] == 1)


def test_many_requests_at_once(serve):
    with dial(serve().address) as raw:
        session = hello(raw)
        frames = [
            wire.request_frame(
                Op.PING, session=session, request=k, sections=(bytes([k]) * k,) if k else ()
            )
            for k in range(200)
        ]
        raw.sendall(b"".join(frames))
        data = b""
        for k in range(200):
            while len(data) < 64 or len(data) < wire.read_header(data, 4096).length:
                data += raw.recv(65536)
            header = wire.read_header(data, 4096)
            assert (header.request, data[64 : header.length]) == (k, bytes([k]) * k)
            data = data[header.length :]


def test_caps_on_sessions_and_connections(serve, connect):
    server = serve(sessions=2, connections=3)
    clients = [connect(server.address) for _ in range(2)]
    with pytest.raises(remote.LimitReached):
        connect(server.address)
    wait_until(lambda: server.stats()["open"] == 2)
    with dial(server.address), dial(server.address) as above:
        assert at_its_end(above)
    assert server.stats()["turned_away"] == 2
    clients[0].close()
    connect(server.address)


def test_tokens_are_of_their_connection(serve, connect):
    server = serve()
    other = connect(server.address)
    with dial(server.address) as raw:
        hello(raw)
        raw.sendall(wire.request_frame(Op.PING, session=other._session))
        assert status_of_reply(raw) == 108
        assert at_its_end(raw)
    assert other.ping() == b""


def test_addresses_that_are_none():
    for address in (
        "localhost",
        "tcp://host",
        "tcp://:1",
        "tcp://h:99999",
        "unix:",
        "shm:",
        "memif:?id=1",
        "udp://h",
    ):
        with pytest.raises(ValueError, match="address must be"):
            remote.ReplayClient(address)
    for address, message in (
        ("shm:/path?busy=2", "shm knows busy from 0 to 1, got busy=2"),
        ("shm:/path?idle=1", "shm knows busy from 0 to 1, got idle=1"),
        ("memif:/path?id=x", "memif knows id from 0 to 252, got id=x"),
    ):
        with pytest.raises(ValueError, match=message):
            remote.ReplayClient(address)
    with pytest.raises(remote.ConnectionLost, match="no replay server"):
        remote.ReplayClient("unix:/nonexistent/socket")


def test_damaged_snapshots(serve, connect, tmp_path):
    path = tmp_path / "snapshot"
    server = serve(snapshot_path=path)
    connect(server.address).table(SPEC).push([np.ones((10, 256), np.float32)])
    server.snapshot()
    server.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(remote.SnapshotFailed):
        serve(snapshot_path=path)
    path.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    with pytest.raises(remote.SnapshotFailed):
        serve(snapshot_path=path)
    for garbage in (b"garbage", b"no snapshot at all, but long enough"):
        path.write_bytes(garbage)
        with pytest.raises(remote.SnapshotFailed, match="not a snapshot"):
            serve(snapshot_path=path)
    path.write_bytes(whole)
    assert serve(snapshot_path=path).stats()["tables"]["t"]["size"] == 10


def test_a_snapshot_is_one_servers(serve, tmp_path):
    path = tmp_path / "made" / "snapshot"
    first = serve(snapshot_path=path)
    with pytest.raises(remote.SnapshotFailed, match=f"another server has the snapshot {path}"):
        serve(snapshot_path=path)
    other = serve(snapshot_path=path.with_name("other"))
    first.close()
    serve(snapshot_path=path).close()
    other.close()
    assert list(path.parent.iterdir()) == []  # neither locks nor snapshots that nobody asked for


def test_a_killed_server_leaves_its_snapshot_to_the_next(serve, tmp_path):
    path = tmp_path / "snapshot"
    with remote.ReplayServerProcess(snapshot_path=path) as killed:
        with pytest.raises(remote.SnapshotFailed, match="another server"):
            serve(snapshot_path=path)
        killed.process.kill()
        killed.process.wait()
        serve(snapshot_path=path)


def test_what_a_server_process_prints_is_no_answer(built, monkeypatch, tmp_path):
    """As DPDK does, to standard output; and what is no answer ends the process."""
    program = (
        "import os\nfrom accel_rl.remote import process\nServer = process.ReplayServer\n"
        "process.ReplayServer = lambda **named: os.write(1, b'usage\\n') and Server(**named)\n"
        "process.main()\n"
    )
    with start("-c", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        said = server.communicate('{"host": null, "unix_path": "%s"}\n' % (tmp_path / "s"), LIMIT)
    assert json.loads(said[0]) == {"addresses": [f"unix:{tmp_path / 's'}"]}

    chatter = tmp_path / "python"
    chatter.write_text("#!/bin/sh\necho $$ > $0.pid\necho usage\nexec cat > /dev/null\n")
    chatter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(chatter))
    with pytest.raises(ValueError, match="Expecting value"):
        remote.ReplayServerProcess()
    assert not pathlib.Path("/proc", chatter.with_name("python.pid").read_text().strip()).exists()


def test_where_no_snapshot_can_be_written(serve, tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "linked.lock").symlink_to(tmp_path / "file")
    for path, why in (
        (tmp_path, "it is a directory"),
        (tmp_path / "file" / "x", "its folder is a file"),
        (tmp_path / "pipe", "it is no regular file"),
        (tmp_path / "linked", "Too many levels of symbolic links"),
    ):
        with pytest.raises(remote.SnapshotFailed, match=f"cannot be written to {path}: {why}"):
            serve(snapshot_path=path)


def test_a_snapshot_is_not_written_through_a_link(built, serve, tmp_path):
    (tmp_path / "file").write_text("of somebody")
    (tmp_path / "snapshot.partial").symlink_to(tmp_path / "file")
    server = serve(snapshot_path=tmp_path / "snapshot")
    with pytest.raises(remote.SnapshotFailed, match="symbolic links"):
        server.snapshot()
    assert (tmp_path / "file").read_text() == "of somebody"
    os.mkfifo(tmp_path / "pipe")
    settings = built.ServerSettings()
    settings.snapshot_path = str(tmp_path / "pipe")
    with pytest.raises(built.Error, match="not a regular file"):
        built.Server(settings, None).recover()


def test_a_server_starts_once_and_is_stopped_by_many(built):
    server = built.Server(built.ServerSettings(), None)
    server.listen_tcp("127.0.0.1", 0)
    server.start()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: server.stop(), range(4)))
    with pytest.raises(built.Error, match="started before"):
        server.start()


def test_a_server_restores_once(built, serve, connect, tmp_path):
    server = serve(snapshot_path=tmp_path / "snapshot")
    connect(server.address).table(SPEC).push([np.ones((10, 256), np.float32)])
    server.snapshot()
    settings = built.ServerSettings()
    settings.snapshot_path = str(tmp_path / "snapshot")
    again = built.Server(settings, None)
    again.recover()
    with pytest.raises(built.Error, match="holds tables"):
        again.recover()
    assert again.stats()["tables"]["t"]["size"] == 10
