"""Sessions by plain sockets, for frames that no client of the library would send."""

import socket

from accel_rl.remote import wire
from accel_rl.remote.links import parse_address
from accel_rl.remote.wire import Op


def begin(address, timeout):
    """Return a socket connected over TCP or a Unix socket, and the token of its session."""
    where = parse_address(address)
    if where.kind == "unix":
        raw = socket.socket(socket.AF_UNIX)
        raw.settimeout(timeout)
        raw.connect(str(where.path))
    else:
        raw = socket.create_connection((where.host, where.port), timeout)
    raw.sendall(wire.request_frame(Op.HELLO, fixed=bytes(24)))
    return raw, wire.read_header(raw.recv(64), 64).session
