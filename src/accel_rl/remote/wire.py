"""Wire format of the replay protocol, as docs/replay-protocol.md defines it.

All numbers are little-endian. A frame is a header of 40 bytes, 24 bytes of fixed fields, and
sections that begin at multiples of 64 bytes from the start of the frame.
"""

import enum
import struct
from collections.abc import Sequence
from typing import NamedTuple

from accel_rl.arguments import whole
from accel_rl.remote.errors import ProtocolError
from accel_rl.remote.schema import DTYPES, SAMPLERS, Column, Limiter, TableSpec

MAGIC = 0x524C5241  # "ARLR"
VERSION = 1
ALIGN = 64
NO_TABLE = 0xFFFF
NONCE_BYTES, MAC_BYTES = 16, 32
REPLY = 1  # flag


class Op(enum.IntEnum):
    """Operations of the protocol."""

    HELLO = 1
    CHALLENGE = 2
    AUTH = 3
    WELCOME = 4
    OPEN_TABLE = 5
    PUSH = 6
    SAMPLE = 7
    UPDATE = 8
    STATS = 9
    PUBLISH = 10
    FETCH = 11
    SNAPSHOT = 12
    PING = 13
    BYE = 14
    DELETE = 18
    NEXT_TABLE = 19
    DRAIN = 20


# Layouts; tests/remote/golden/fields.csv has every field. "<": little-endian, without padding.
_HEADER = "IBBHQQHHHHII"
HEADER = struct.Struct("<" + _HEADER)
# Offsets in the header.
OP_AT, SESSION_AT, REQUEST_AT, TABLE_AT, LENGTH_AT = 5, 8, 16, 24, 32
U16, U32, U64 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")
SESSION_AND_REQUEST = struct.Struct("<QQ")

# Requests on hot paths: header and fixed fields.
PUSH = struct.Struct("<" + _HEADER + "III12x")  # items, timeout in ms, 1 if with priorities
SAMPLE = struct.Struct("<" + _HEADER + "QII8x")  # seed, batch, timeout in ms
UPDATE = struct.Struct("<" + _HEADER + "I20x")  # items

# Fixed fields of the other requests and of replies, which begin at FIXED.
FIXED = HEADER.size
DELETE = struct.Struct("<BxH")  # 1 for a name in the mailbox, bytes of the name
NEXT_TABLE = struct.Struct("<H")  # the least number
HELLO = struct.Struct("<Q16s")  # session to resume, nonce
WELCOME = struct.Struct("<IIIB")  # frame bytes, items, session's ms without a connection, resumed
# Capacity, flags, sampler, columns, exponent, bytes of the name, limited, least size, samples per
# insert, least and most difference, groups, share of the candidate set, highest priority.
OPEN_TABLE = struct.Struct("<IHBBfBBxxQdddIff")
PUSH_REPLY = struct.Struct("<II")  # items, items held
SAMPLE_REPLY = struct.Struct("<IId")  # batch, items held, sum of weights
UPDATE_REPLY = struct.Struct("<II")  # applied, stale
STATS_REPLY = struct.Struct("<I4xd")  # counts, sum of weights
PUBLISH = struct.Struct("<QIH")  # version, bytes of the value, bytes of the name
FETCH = struct.Struct("<QB3xH")  # known version, 1 if none is known, bytes of the name
FETCH_REPLY = struct.Struct("<Q")  # version

BODY = PUSH.size  # offset of the first section
NAMES = FIXED + OPEN_TABLE.size  # offset of the names in a table description
CREATE, DESCRIBED = 1, 2  # flags of OPEN_TABLE
assert PUSH.size == SAMPLE.size == UPDATE.size == ALIGN

SERVER_COUNTS = [
    "connections",
    "open",
    "sessions",
    "requests",
    "malformed",
    "unauthenticated",
    "slow",
    "timed_out",
    "turned_away",
    "bytes_in",
    "bytes_out",
    "waiting",
    "repeated",
    "snapshots",
]
TABLE_COUNTS = ["inserts", "samples", "updates", "stale", "size", "refused", "waited", "capped"]


class Header(NamedTuple):
    """Fields of a frame header, the first 40 bytes."""

    op: int
    flags: int
    session: int
    request: int
    table: int
    status: int
    length: int  # of the whole frame, bytes
    checksum: int


def aligned(offset: int) -> int:
    """Round up to a multiple of 64."""
    return -(-offset // ALIGN) * ALIGN


def read_header(data: bytes | bytearray | memoryview, most: int) -> Header:
    """Parse the header of a reply."""
    magic, version, op, flags, session, request, table, status, _, fragments, length, checksum = (
        HEADER.unpack_from(data)
    )
    if magic != MAGIC or version != VERSION or not flags & REPLY or fragments != 1:
        raise ProtocolError(f"no reply of version {VERSION} of the protocol: {bytes(data[:8])!r}")
    if not BODY <= length <= most:
        raise ProtocolError(f"a reply must have {BODY} to {most} bytes, got {length}")
    return Header(op, flags, session, request, table, status, length, checksum)


def counts_of(names: Sequence[str], reply: memoryview) -> dict[str, int]:
    """Parse the counters of a reply, 8 bytes for each name."""
    form = f"<{len(names)}Q"
    if len(reply) < BODY + struct.calcsize(form):
        raise ProtocolError(f"a reply must have {len(names)} counters, got {len(reply)} bytes")
    return dict(zip(names, struct.unpack_from(form, reply, BODY), strict=True))


def header_fields(op: Op, table: int, length: int) -> tuple[int, ...]:
    """Return the header of a request, without session and request number, as HEADER packs it."""
    return MAGIC, VERSION, op, 0, 0, 0, table, 0, 0, 1, length, 0


def request_frame(
    op: Op,
    *,
    session: int = 0,
    request: int = 0,
    table: int = NO_TABLE,
    fixed: bytes = b"",
    sections: tuple[bytes | memoryview, ...] = (),
) -> bytearray:
    """Build a complete request frame; not for hot paths."""
    end = BODY
    for each in sections:
        end = aligned(end) + len(each)
    frame = bytearray(end)
    HEADER.pack_into(frame, 0, MAGIC, VERSION, op, 0, session, request, table, 0, 0, 1, end, 0)
    frame[FIXED : FIXED + len(fixed)] = fixed
    at = BODY
    for each in sections:
        at = aligned(at)
        frame[at : at + len(each)] = each
        at += len(each)
    return frame


def message_of(frame: bytes | bytearray | memoryview) -> str:
    """Return the message of an error reply."""
    return bytes(frame[BODY:]).decode("utf-8", "replace")


def transcript(challenge: bytes, nonce: bytes, resume: int) -> bytes:
    """Return the handshake transcript that the proofs of both sides cover, 56 bytes."""
    return challenge + nonce + U64.pack(resume)


def describe(spec: TableSpec | str, create: bool) -> bytearray:
    """Build an OPEN_TABLE request, without session and request number.

    A request with a name instead of a spec opens an existing table only.
    """
    if isinstance(spec, str):
        name = spec.encode()
        fields = OPEN_TABLE.pack(0, 0, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0, 0, 0)
        return _open_request(fields + name)
    name = spec.name.encode()
    limiter = spec.limiter
    ratio = 1.0 if limiter.samples_per_insert is None else limiter.samples_per_insert
    body = OPEN_TABLE.pack(
        spec.capacity,
        (CREATE if create else 0) | DESCRIBED,
        SAMPLERS.index(spec.sampler),
        len(spec.columns),
        spec.priority_exponent,
        len(name),
        limiter.samples_per_insert is not None,
        limiter.min_size,
        ratio,
        limiter.min_diff,
        limiter.max_diff,
        spec.groups,
        spec.csp_ratio,
        spec.max_priority,
    )
    body += name
    for column in spec.columns:
        label = column.name.encode()
        body += bytes([DTYPES.index(column.dtype), len(column.shape), len(label)]) + label
        body += struct.pack(f"<{len(column.shape)}I", *column.shape)
    return _open_request(body)


def _open_request(body: bytes) -> bytearray:
    """Build an OPEN_TABLE request; its fields go on where the fixed ones end."""
    split = BODY - FIXED
    return request_frame(Op.OPEN_TABLE, fixed=body[:split], sections=(body[split:],))


def described(frame: bytes | bytearray | memoryview) -> TableSpec:
    """Parse the table specification of an OPEN_TABLE reply."""
    capacity, _, sampler, columns, exponent, name_bytes, limited, min_size, *rest = (
        OPEN_TABLE.unpack_from(frame, FIXED)
    )
    ratio, min_diff, max_diff, groups, csp_ratio, max_priority = rest
    at = NAMES + name_bytes
    name = bytes(frame[NAMES:at]).decode()
    found = []
    for _ in range(columns):
        dtype, axes, size = frame[at : at + 3]
        at += 3
        label = bytes(frame[at : at + size]).decode()
        at += size
        found.append(Column(label, DTYPES[dtype], struct.unpack_from(f"<{axes}I", frame, at)))
        at += 4 * axes
    limiter = Limiter(min_size, ratio if limited else None, min_diff, max_diff)
    return TableSpec(
        name,
        capacity,
        tuple(found),
        SAMPLERS[sampler],
        exponent,
        limiter,
        groups,
        csp_ratio,
        max_priority,
    )


def check_u64(name: str, value: int) -> None:
    """Raise ValueError if the value is not an unsigned 64-bit integer."""
    whole(name, value, 0, (1 << 64) - 1)
