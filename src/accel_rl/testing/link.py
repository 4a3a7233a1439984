"""Contract check of links to a replay server; see docs/replay-protocol.md."""

import contextlib
import dataclasses
import struct
import time

import numpy as np

from accel_rl.remote import Column, ReplayClient, TableSpec, wire
from accel_rl.remote.connection import Connection
from accel_rl.remote.links import Link, Parts, Served
from accel_rl.testing.expect import expect, expect_equal

SIZES = (0, 1, 64, 4096, 100_000)  # bytes; the last is more than links keep room for
SPEC = TableSpec("check_link", 64, (Column("x", "i4", (3,)),))


def check_link(server: str | Served, seconds: float = 10.0) -> None:
    """Check the contract of the link to a server.

    Args:
      server: server argument of `ReplayClient`: a `ReplayServer` with default settings, reached by
        the link under test. The check creates a table "check_link".
      seconds: timeout of an answer.
    """
    with contextlib.closing(Connection(server, None, 0, seconds)) as connection:
        rooms = [(size, room) for size in SIZES for room in (None, wire.BODY, wire.BODY + size)]
        for number, (size, room) in enumerate(rooms, start=10):
            payload = bytes(range(256)) * (size // 256) + bytes(range(size % 256))
            _check_ping(connection, number, payload, room)
    with ReplayClient(server, timeout=seconds) as one, ReplayClient(server, timeout=seconds) as two:
        rows = np.arange(96, dtype=np.int32).reshape(32, 3)
        one.table(SPEC).push([rows])
        drawn = two.table(SPEC).sample(seed=1, batch=16)
        found = {tuple(row) for row in drawn.columns["x"].tolist()}
        expect(found <= set(map(tuple, rows.tolist())), "what is sampled was never pushed")
    _check_timeout(Connection(server, None, 0, seconds))


def _check_ping(connection: Connection, number: int, payload: bytes, room: int | None) -> None:
    """Check a request in three parts, and its reply into a buffer of `room` bytes."""
    sections = (payload,) if payload else ()
    frame = wire.request_frame(
        wire.Op.PING, session=connection.session, request=number, sections=sections
    )
    parts: Parts = (bytes(frame[:64]), frame[64:80], memoryview(frame)[80:])
    into = None if room is None else memoryview(bytearray(room))
    what = f"of a ping with {len(payload)} bytes into {room}"
    given = [part for part in parts if len(part)]
    header, reply = connection.link.exchange(given, into, connection.frame_bytes)
    expect_equal((header.op, header.status), (wire.Op.PING, 0), f"operation and status {what}")
    expect_equal(header.request, number, f"the number {what}")
    expect_equal(header.length, len(reply), f"the length {what}")
    expect(bytes(reply[wire.BODY :]) == payload, f"the payload {what} must come back")
    if into is not None and room is not None and room >= len(reply):
        expect(bytes(into[: len(reply)]) == bytes(reply), f"the reply {what} must lie there")


def _check_timeout(connection: Connection) -> None:
    """Check the errors of a late reply and of a closed link."""
    link = connection.link
    with contextlib.closing(connection):
        empty = dataclasses.replace(SPEC, name="check_link_empty")
        opened = wire.describe(empty, create=True)
        wire.SESSION_AND_REQUEST.pack_into(opened, wire.SESSION_AT, connection.session, 1)
        header, _ = link.exchange([opened], None, connection.frame_bytes)
        expect_equal(header.status, 0, "the status of opening a table")
        link.set_timeout(0.2)
        waits = wire.request_frame(
            wire.Op.SAMPLE,
            session=connection.session,
            request=2,
            table=header.table,
            fixed=struct.pack("<QII", 0, 4, 60_000),
        )
        begin = time.monotonic()
        late = _error_of(link, waits, connection.frame_bytes)
        passed = time.monotonic() - begin
        expect(isinstance(late, TimeoutError), f"no reply in time must be a timeout, not {late!r}")
        expect(0.15 < passed < 30, f"a timeout of 0.2 s took {passed:.2f} s")
        link.close()
        link.close()
        closed = _error_of(link, waits, connection.frame_bytes)
        expect(isinstance(closed, OSError), f"a closed link must raise an OSError, not {closed!r}")


def _error_of(link: Link, frame: bytearray, most: int) -> Exception | None:
    try:
        link.exchange([frame], None, most)
    except Exception as error:
        return error
    return None
