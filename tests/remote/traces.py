"""Requests of the golden traces, and reading of those files."""

import pathlib
import struct

import numpy as np
from checksums import checked

from accel_rl.remote import Column, Limiter, TableSpec, wire
from accel_rl.remote.wire import Op

GOLDEN = pathlib.Path(__file__).parent / "golden"
TOKEN = 0x0807060504030201  # of the first session, where random bits are 1, 2, 3, ...
SPEC = TableSpec(
    "steps",
    8,
    (Column("observation", "f4", (3,)), Column("action", "i4"), Column("done", "b1")),
    priority_exponent=1.0,
    limiter=Limiter(2, 4.0, -8.0, 64.0),
)
ITEMS = {
    "observation": np.arange(9, dtype=np.float32).reshape(3, 3),
    "action": np.array([7, -1, 3], np.int32),
    "done": np.array([False, True, False]),
}
PRIORITIES = np.array([1, 2, 5], np.float32)


def read(name):
    """(request, reply) pairs of bytes."""
    lines = (GOLDEN / name).read_text().splitlines()
    frames = [bytes.fromhex(line[2:]) for line in lines if line[:2] in ("> ", "< ")]
    return list(zip(frames[::2], frames[1::2], strict=True))


def _raw(*arrays):
    return tuple(array.tobytes() for array in arrays)


def requests():
    """(what, frame) in the order of session.hex."""
    items = _raw(*ITEMS.values())
    table = {"table": 0}
    nan = np.array([1, np.nan, 1], np.float32)
    slots, ones = np.array([0, 2, 0], np.uint32), np.array([1, 1, 1], np.uint32)
    opening = wire.describe(SPEC, create=True)
    named = wire.describe("steps", create=False)
    weighted, alone = struct.pack("<III", 3, 0, 1), struct.pack("<III", 3, 0, 0)
    return [
        ("hello", Op.HELLO, {"fixed": bytes(8) + bytes(range(16)), "session": 0}),
        ("a table that is not there yet", named, {}),
        ("open table", opening, {}),
        ("sample, with nothing there", Op.SAMPLE, table | {"fixed": struct.pack("<QI", 1, 2)}),
        ("push", Op.PUSH, table | {"fixed": weighted, "sections": _raw(PRIORITIES) + items}),
        ("push, checked", Op.PUSH, table | {"fixed": alone, "sections": items}),
        (
            "push with NaN",
            Op.PUSH,
            table | {"fixed": weighted, "sections": _raw(nan) + items},
        ),
        ("sample", Op.SAMPLE, table | {"fixed": struct.pack("<QI", 2**63 + 5, 5)}),
        ("sample, checked", Op.SAMPLE, table | {"fixed": struct.pack("<QI", 6, 1)}),
        (
            "update, of a slot twice",
            Op.UPDATE,
            table | {"fixed": struct.pack("<I", 3), "sections": _raw(slots, ones, PRIORITIES)},
        ),
        (
            "update of other generations",
            Op.UPDATE,
            table | {"fixed": struct.pack("<I", 3), "sections": _raw(slots, ones + 1, PRIORITIES)},
        ),
        ("statistics of the table", Op.STATS, table),
        (
            "publish",
            Op.PUBLISH,
            {"fixed": struct.pack("<QIH", 3, 4, 1), "sections": (b"w", b"1234")},
        ),
        (
            "publish an older one",
            Op.PUBLISH,
            {"fixed": struct.pack("<QIH", 2, 1, 1), "sections": (b"w", b"1")},
        ),
        ("fetch", Op.FETCH, {"fixed": struct.pack("<QIH", 2, 0, 1), "sections": (b"w",)}),
        (
            "fetch, none newer",
            Op.FETCH,
            {"fixed": struct.pack("<QIH", 3, 0, 1), "sections": (b"w",)},
        ),
        ("snapshot, without a path", Op.SNAPSHOT, {}),
        ("ping", Op.PING, {"fixed": bytes(range(24)), "sections": (b"echo",)}),
        ("an operation that there is not", 99, {}),
        ("bye", Op.BYE, {}),
    ]


def frames():
    """(what, bytes) of each request, numbered from 1."""
    for number, (what, op, arguments) in enumerate(requests(), 1):
        if isinstance(op, bytearray):
            wire.SESSION_AND_REQUEST.pack_into(op, wire.SESSION_AT, TOKEN, number)
            yield what, bytes(op)
        else:
            frame = wire.request_frame(op, **{"session": TOKEN, "request": number} | arguments)
            yield what, checked(frame) if what.endswith(", checked") else bytes(frame)
