"""Links of the native module: shared memory, datagrams, and a server in this process."""

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
    """A link in C++, which waits without Python's lock; Ctrl-C reaches the thread that waits."""

    def __init__(self, link: Any) -> None:
        self._link = link
        self._error = native().Error
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._timeout_us = 0
        self._most = 0

    def set_timeout(self, seconds: float | None) -> None:
        """Seconds that a reply may take; None: for ever."""
        self._timeout_us = _microseconds(seconds)

    def exchange(
        self, parts: Parts, into: memoryview | None, most: int
    ) -> tuple[wire.Header, memoryview]:
        """`Link.exchange`."""
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
        """Most bytes that a reply may have."""
        self._link.set_frame_bytes(most)
        self._most = most

    def probe(self, frame: bytes | bytearray, rounds: int) -> NDArray[np.int64]:
        """How long each of `rounds` exchanges of a frame took, in ns, without Python in between.

        Raises:
          ConnectionError, TimeoutError, ProtocolError: as `exchange`.
        """
        try:
            times = self._link.probe(frame, rounds, self._timeout_us)
        except self._error as error:
            raise ProtocolError(str(error.args[0])) from error
        return np.frombuffer(times, np.int64)

    def close(self) -> None:
        """Ends the link; a second time does nothing."""
        if self._link is not None:
            self._link.close()
            self._link = None


def open_native(address: Address, timeout: float | None) -> NativeLink:
    """A link by the module's function for addresses of that kind.

    Raises:
      OSError: if nobody answers there.
      ValueError: if this build has none.
    """
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
    """A link over TCP or a Unix socket in C++, for who measures these without Python.

    Args:
      address: of kind "tcp" or "unix".
      busy: whether it asks for a reply again and again, instead of sleeping until it is there.
      timeout: seconds that a reply may take; None: any time.

    Raises:
      OSError: if nobody answers there.
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
    """As the module takes timeouts: 0 is for ever."""
    return 0 if seconds is None else max(int(seconds * 1e6), 1000)
