"""Links of the native module: shared memory, datagrams, and servers in this process."""

import socket
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_rl.remote import wire
from accel_rl.remote.errors import ConnectionLost, ProtocolError
from accel_rl.remote.links.address import Address
from accel_rl.remote.links.link import Parts
from accel_rl.remote.module import native

_SCRATCH_BYTES = 1 << 16


class NativeLink:
    """Link in C++, which waits without the GIL; Ctrl-C interrupts a waiting thread."""

    def __init__(self, link: Any) -> None:
        self._link = link
        self._error = native().Error
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._timeout_us = 0
        self._most = 0

    def set_timeout(self, seconds: float | None) -> None:
        """Set the seconds to wait for a reply; None: no limit."""
        self._timeout_us = _microseconds(seconds)

    def exchange(
        self, parts: Parts, into: memoryview | None, most: int
    ) -> tuple[wire.Header, memoryview]:
        """Send a request and return the reply, see `Link.exchange`."""
        if self._link is None:
            raise ConnectionLost("the link is closed")
        if most != self._most:
            self.set_frame_bytes(most)
        buffer = self._scratch if into is None else into
        try:
            reply = self._link.exchange(parts, buffer, self._timeout_us)
        except self._error as error:
            raise ProtocolError(str(error.args[0])) from error
        view = buffer[:reply] if isinstance(reply, int) else memoryview(reply)
        return wire.read_header(view, most), view

    def set_frame_bytes(self, most: int) -> None:
        """Set the limit on the bytes of a reply."""
        self._link.set_frame_bytes(most)
        self._most = most

    def probe(self, frame: bytes | bytearray, rounds: int) -> NDArray[np.int64]:
        """Return the times of `rounds` exchanges of a frame, in ns, without Python in between.

        Raises:
          ConnectionError, TimeoutError, ProtocolError: as `exchange`.
        """
        try:
            times = self._link.probe(frame, rounds, self._timeout_us)
        except self._error as error:
            raise ProtocolError(str(error.args[0])) from error
        return np.frombuffer(times, np.int64)

    def close(self) -> None:
        """Close the link. Idempotent."""
        if self._link is not None:
            self._link.close()
            self._link = None


def open_native(address: Address, timeout: float | None) -> NativeLink:
    """Open a link of the native module, by the kind of the address."""
    opener = getattr(native(), f"open_{address.kind}", None)
    if opener is None:
        raise ValueError(f"address must be of another kind: this build has no {address.kind}")
    where: dict[str, Any] = {"path": address.path}
    if address.kind == "udp":
        where = {"host": address.host, "port": address.port}
    link = NativeLink(opener(**where, **address.options, timeout_us=_microseconds(timeout)))
    link.set_timeout(timeout)
    return link


def open_native_socket(address: Address, busy: bool, timeout: float | None) -> NativeLink:
    """Open a link over TCP or a Unix socket in C++, for measurements without Python.

    Args:
      address: of kind "tcp" or "unix".
      busy: poll for replies instead of sleeping until they arrive.
      timeout: seconds to wait for a reply; None: no limit.
    """
    if address.kind == "unix":
        link = NativeLink(native().open_unix(address.path, busy, _microseconds(timeout)))
    else:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        host = found[0][4][0]
        link = NativeLink(native().open_tcp(host, address.port, busy, _microseconds(timeout)))
    link.set_timeout(timeout)
    return link


def _microseconds(seconds: float | None) -> int:
    """Convert a timeout for the native module, where 0 means no limit."""
    return 0 if seconds is None else max(int(seconds * 1e6), 1000)
