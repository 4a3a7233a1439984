"""A client that sends much work at once leaves turns to others."""

import contextlib
import threading
import time

import numpy as np
import pytest
from optional import needs
from processes import LIMIT
from raw_session import begin

from accel_rl.remote import Column, TableSpec, wire
from accel_rl.remote.wire import Op

pytestmark = needs("replay server")
SPEC = TableSpec("t", 300_000, (Column("x", "u1"),), priority_exponent=1.0, sampler="amper_fr")
REQUESTS = 200
MIB = 1 << 20


def read(raw, count):
    """Statuses of the next replies."""
    data, statuses = bytearray(), []
    while len(statuses) < count:
        data += raw.recv(1 << 16) or pytest.fail(f"closed after {len(statuses)} replies")
        while len(data) >= wire.BODY and len(data) >= wire.read_header(data, 1 << 26).length:
            header = wire.read_header(data, 1 << 26)
            statuses.append(header.status)
            del data[: header.length]
    return statuses


def fill(client):
    table = client.table(SPEC)
    rng = np.random.default_rng(0)
    for _ in range(5):
        rows = rng.integers(0, 256, 60_000, dtype=np.uint8)
        table.push([rows], rng.lognormal(0, 3, 60_000).astype(np.float32))


def ask_for_much(address):
    """Send `REQUESTS` samples of one item at once, and return the socket."""
    raw, session = begin(address, LIMIT)
    opening = wire.describe(SPEC, create=False)
    wire.SESSION_AND_REQUEST.pack_into(opening, wire.SESSION_AT, session, 1)
    raw.sendall(opening)
    number = wire.read_header(raw.recv(4096), 4096).table
    frames = b"".join(
        wire.request_frame(
            Op.SAMPLE, session=session, request=2 + each, table=number,
            fixed=wire.U64.pack(each) + wire.U32.pack(1) + wire.U32.pack(0),
        )
        for each in range(REQUESTS)
    )  # fmt: skip
    raw.sendall(frames)
    return raw


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_others_have_their_turns(serve, connect, tmp_path, kind):
    server = serve(unix_path=tmp_path / "socket")
    address = next(each for each in server.addresses if each.startswith(kind))
    with connect(address) as client:
        fill(client)
        replies = []
        began = time.monotonic()
        raw = ask_for_much(address)
        reading = threading.Thread(target=lambda: replies.extend(read(raw, REQUESTS)))
        reading.start()
        pings = 0
        while reading.is_alive():
            client.ping()
            pings += 1
        seconds = time.monotonic() - began
        reading.join()
        raw.close()
    assert replies == [0] * REQUESTS
    # Each request may come between two pings, and no more than a turn's.
    assert pings > min(20, 10 * seconds)


def test_who_waits_for_samples_is_no_slow_sender(serve, connect):
    server = serve(buffer_bytes=MIB)
    with connect(server.address) as client:
        fill(client)
    raw = ask_for_much(server.address)
    greedy, session = begin(server.address, LIMIT)
    frame = wire.request_frame(Op.PING, session=session, request=2, sections=(bytes(4 * MIB),))
    with contextlib.suppress(ConnectionError):
        greedy.sendall(frame)
    assert read(raw, REQUESTS) == [0] * REQUESTS
    assert server.stats()["turned_away"] == 1
    raw.close()
    greedy.close()
