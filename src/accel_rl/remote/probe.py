"""Round-trip times of a transport, measured without Python in between."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_rl.arguments import whole
from accel_rl.remote import wire
from accel_rl.remote.connection import Connection
from accel_rl.remote.errors import error_of
from accel_rl.remote.links import Served, open_link, parse_address
from accel_rl.remote.links.native import NativeLink, open_native_socket
from accel_rl.remote.table import MOST_ITEMS
from accel_rl.remote.wire import BODY, Op

_FIRST = 3  # first request number after the handshake, HELLO and AUTH


def probe(
    address: str | Served,
    *,
    frame_bytes: int = BODY,
    sample: tuple[str, int] | None = None,
    rounds: int = 10_000,
    busy: bool = False,
    secret: bytes | None = None,
    timeout: float | None = 30.0,
) -> NDArray[np.int64]:
    """Measure round-trip times of successive requests, with a client in C++.

    Args:
      address: of a server, or a server in this process.
      frame_bytes: size of a ping, and of its reply.
      sample: name of a table, and a batch: send samples instead of pings, with seeds 0, 1, 2, ...
      rounds: number of requests.
      busy: over TCP and Unix sockets, poll for replies instead of sleeping until they arrive; for
        shared memory use the address "shm:/path?busy=1".
      secret: the server's, if it has one.
      timeout: seconds to wait for a reply; None: no limit.

    Returns:
      Round-trip times in nanoseconds, [rounds], in order.

    Raises:
      ValueError: if `rounds` is below 1, `frame_bytes` below 64 or above the server's limit, the
        batch is out of range, or the address is a tls address.
      NoSuchTable, TryAgain, LimitReached: if the table does not exist, or cannot be sampled so.
      ConnectionLost: if no server answers.
      ImportError: if the native module was not built.
    """
    whole("rounds", rounds, 1)
    if sample is not None:
        whole("batch", sample[1], 1, MOST_ITEMS)

    def opener(where: Any, seconds: float | None) -> NativeLink:
        parsed = parse_address(where) if isinstance(where, str) else None
        if parsed is not None and parsed.kind in ("tcp", "unix"):
            return open_native_socket(parsed, busy, seconds)
        if parsed is not None and parsed.kind == "tls":
            raise ValueError(f"address must be of another kind: TLS is not probed, got {where!r}")
        link = open_link(where, seconds)
        assert isinstance(link, NativeLink)
        return link

    connection = Connection(address, secret, 0, timeout, opener)
    try:
        whole("frame_bytes", frame_bytes, BODY, connection.frame_bytes)
        link = connection.link
        assert isinstance(link, NativeLink)
        link.set_frame_bytes(connection.frame_bytes)
        if sample is None:
            payload = (bytes(frame_bytes - BODY),) if frame_bytes > BODY else ()
            asks = wire.request_frame(Op.PING, sections=payload)
        else:
            asks = _sample(connection, *sample)
        _ask(connection, asks, _FIRST + 1, "probe")
        wire.U64.pack_into(asks, wire.REQUEST_AT, _FIRST + 2)
        times = link.probe(asks, rounds)
        bye = wire.request_frame(Op.BYE, session=connection.session, request=_FIRST + 2 + rounds)
        link.exchange([bye], None, connection.frame_bytes)
        return times
    finally:
        connection.close()


def _sample(connection: Connection, table: str, batch: int) -> bytearray:
    """Build a request for a sample of a table, without session and request number."""
    opens = wire.describe(table, create=False)
    header = _ask(connection, opens, _FIRST, f"open table {table!r}")
    return bytearray(
        wire.SAMPLE.pack(*wire.header_fields(Op.SAMPLE, header.table, BODY), 0, batch, 0)
    )


def _ask(connection: Connection, frame: bytearray, request: int, what: str) -> wire.Header:
    """Send a request and return the header of the reply; raise the error of its status."""
    wire.SESSION_AND_REQUEST.pack_into(frame, wire.SESSION_AT, connection.session, request)
    header, reply = connection.link.exchange([frame], None, connection.frame_bytes)
    if header.status != 0:
        raise error_of(header.status, what, wire.message_of(reply))
    return header
