"""Who asks for more than there is room for does not shut others out."""

import contextlib
import time

import numpy as np
import pytest
from optional import needs
from processes import LIMIT, wait_until
from raw_session import begin

from accel_rl import remote
from accel_rl.remote import wire
from accel_rl.remote.wire import Op

pytestmark = needs("replay server")
MIB = 1 << 20
SPEC = remote.TableSpec("t", 64, (remote.Column("x", "u1", (MIB,)),))


def half_sent(address, count, whole):
    """Send `count` bytes of a request of `whole` bytes, and return the socket."""
    raw, session = begin(address, LIMIT)
    frame = wire.request_frame(Op.PING, session=session, request=2)
    wire.U32.pack_into(frame, wire.LENGTH_AT, whole)
    raw.sendall(bytes(frame) + bytes(count - len(frame)))
    return raw


def test_frames_that_stand_still_give_way(serve, connect):
    server = serve(buffer_bytes=32 * MIB)
    hogs = [half_sent(server.address, 9 * MIB, 16 * MIB) for _ in range(4)]
    with connect(server.address) as client:
        table = client.table(SPEC)
        for _ in range(4):
            table.push([np.ones((6, MIB), np.uint8)])
        assert table.stats()["size"] == 24
    assert server.stats()["turned_away"] >= 2
    statuses = []
    for raw in hogs:
        raw.settimeout(0.2)
        with contextlib.suppress(TimeoutError, ConnectionError):
            statuses.append(wire.read_header(raw.recv(4096)[:64], 4096).status)
        raw.close()
    assert statuses
    assert set(statuses) == {remote.module.native().STATUSES["limit"]}


def test_bytes_that_trickle_keep_no_frame(serve):
    server = serve(frame_ms=300)
    raw = half_sent(server.address, 100, 4096)
    began = time.monotonic()
    with contextlib.suppress(ConnectionError):
        while server.stats()["timed_out"] == 0 and time.monotonic() - began < LIMIT:
            raw.sendall(b"x")
            time.sleep(0.02)
    assert server.stats()["timed_out"] == 1
    raw.close()


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_a_connection_too_many_is_told(serve, connect, tmp_path, kind):
    server = serve(connections=2, unix_path=tmp_path / "socket")
    address = next(each for each in server.addresses if each.startswith(kind))
    first, second = connect(address), connect(address)
    with pytest.raises(remote.LimitReached, match="2 connections are open"):
        connect(address)
    assert first.ping(b"x") == second.ping(b"x") == b"x"
    second.close()

    def again():
        with contextlib.suppress(remote.LimitReached):
            return connect(address).ping(b"y") == b"y"

    wait_until(again)
