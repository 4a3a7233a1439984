"""The codec against the golden traces, which the C++ is tested with too."""

import contextlib
import socket
import struct
import tracemalloc

import numpy as np
import pytest
import traces
from checksums import CHECKED, checked, crc32c

from accel_rl.remote import Column, ConnectionLost, Limiter, ProtocolError, TableSpec, wire
from accel_rl.remote.buffers import SampleBuffer
from accel_rl.remote.connection import proof
from accel_rl.remote.links import parse_address
from accel_rl.remote.links.stream import StreamLink


def test_requests_are_those_of_the_trace():
    golden = traces.read("session.hex")
    made = list(traces.frames())
    assert len(golden) == len(made)
    for (what, frame), (request, _) in zip(made, golden, strict=True):
        assert frame == request, what


def reply(what):
    names = [name for name, _ in traces.frames()]
    return traces.read("session.hex")[names.index(what)][1]


def test_replies_of_the_trace_are_read():
    for number, (_, frame) in enumerate(traces.read("session.hex"), 1):
        header = wire.read_header(frame, 1 << 20)
        assert (header.request, header.session) == (number, traces.TOKEN)
        assert header.length == len(frame)
        assert not header.flags & CHECKED or frame == checked(frame)
    assert wire.described(reply("open table")) == traces.SPEC
    assert wire.read_header(reply("push with NaN"), 1 << 20).status == 4
    assert wire.message_of(reply("a table that is not there yet")) == "steps"


def test_a_sample_of_the_trace_is_read():
    frame = reply("sample")
    buffer = SampleBuffer(traces.SPEC.columns, 5)
    assert len(buffer.bytes) == len(frame)
    buffer.bytes[:] = frame
    sample = buffer.sample(6, 23.0)
    # Three items with priorities 1, 2 and 5, then three with the highest: 5. The exponent is 1.
    weights = np.array([1, 2, 5, 5, 5, 5]) / 23
    np.testing.assert_allclose(sample.probabilities, weights[sample.slots])
    np.testing.assert_array_equal(sample.generations, 1)
    rows = sample.slots % 3
    for name, column in traces.ITEMS.items():
        np.testing.assert_array_equal(sample.columns[name], column[rows])
        assert sample.columns[name].ctypes.data % wire.ALIGN == 0


def test_struct_forms_agree_with_whole_frames():
    head = (wire.MAGIC, wire.VERSION, wire.Op.SAMPLE, 0, traces.TOKEN, 8, 0, 0, 0, 1, 64, 0)
    frame = wire.SAMPLE.pack(*head, 2**63 + 5, 5, 0)
    assert frame == dict(traces.frames())["sample"]


def test_crc32c_has_its_check_value():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


@pytest.mark.parametrize(
    "spec",
    [
        TableSpec("a", 1, (Column("x", "b1"),)),
        TableSpec("ä b", 2**31, (Column("x", "f2", (1, 2, 3)), Column("y", "u8")), "uniform"),
        TableSpec("c", 9, (Column("x", "i1"),), "amper_fr", 1.5, Limiter(3, 0.5, -1, 2), 8, 0.3),
    ],
)
def test_descriptions_come_back(spec):
    assert wire.described(wire.describe(spec, create=True)) == spec


@pytest.mark.parametrize(
    ("offset", "byte"), [(0, 0), (4, 2), (6, 0), (30, 2), (32, 63), (34, 0xFF)]
)
def test_what_is_no_reply_is_refused(offset, byte):
    frame = bytearray(reply("bye"))
    wire.read_header(frame, 1 << 20)
    frame[offset] = byte
    with pytest.raises(ProtocolError):
        wire.read_header(frame, 1 << 20)


def test_proofs_depend_on_all_they_should():
    transcript = wire.transcript(bytes(32), bytes(16), 7)
    assert len(transcript) == 56
    known = proof(b"secret", "client", transcript)
    assert len(known) == wire.MAC_BYTES
    others = {
        proof(b"Secret", "client", transcript),
        proof(b"secret", "server", transcript),
        proof(b"secret", "client", transcript[:-8] + struct.pack("<Q", 8)),
    }
    assert known not in others
    assert len(others) == 3


def test_memory_follows_what_has_come(tmp_path):
    """A reply of 4 GiB is announced, and 100,000 bytes come."""
    header = bytearray(reply("statistics of the table"))[: wire.BODY]
    wire.U32.pack_into(header, 32, 2**32 - 64)
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        link = StreamLink(parse_address(f"unix:{path}"), 60.0)
        peer, _ = listening.accept()
    peer.sendall(header + bytes(100_000))
    peer.shutdown(socket.SHUT_WR)
    tracemalloc.start()
    with peer, contextlib.closing(link), pytest.raises(ConnectionLost):
        link.exchange([header], None, 2**32 - 1)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**27


def test_counters_that_are_missing_are_said():
    whole = memoryview(reply("statistics of the table"))
    assert wire.counts_of(wire.TABLE_COUNTS, whole)
    with pytest.raises(ProtocolError, match="counters, got 72 bytes"):
        wire.counts_of(wire.TABLE_COUNTS, whole[:72])
