"""TCP and Unix sockets, in Python: measured as fast as a client in C for a call at a time."""

import select
import socket
import struct
from typing import Any

from accel_rl.remote import wire
from accel_rl.remote.errors import ConnectionLost, ProtocolError
from accel_rl.remote.links.address import Address
from accel_rl.remote.links.link import Parts

_SCRATCH_BYTES = 1 << 16


class StreamLink:
    """A connected stream socket."""

    def __init__(self, address: Address, timeout: float | None) -> None:
        """Connects to the first of the host's addresses where somebody listens.

        Raises:
          OSError: if nobody does.
        """
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        targets: list[tuple[int, Any]] = [(socket.AF_UNIX, address.path)]
        if address.kind != "unix":
            found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
            targets = [(family, target) for family, _, _, _, target in found]
        for number, (family, target) in enumerate(targets):
            last = number == len(targets) - 1
            try:
                self._socket = socket.socket(family, socket.SOCK_STREAM)
            except OSError:  # this machine has no such family
                if last:
                    raise
                continue
            self._timeout: float | None = None
            try:
                if address.kind != "unix":
                    self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.set_timeout(timeout)
                self._socket.connect(target)
                return
            except BaseException as error:
                self.close()
                if not isinstance(error, OSError) or last:
                    raise

    def set_timeout(self, seconds: float | None) -> None:
        """Seconds without a byte after which the connection counts as lost; None: never."""
        if seconds == self._timeout:
            return
        # The kernel's own timeouts: Python's would cost a system call more for each receive.
        left = 0.0 if seconds is None else max(seconds, 1e-3)
        pair = struct.pack("ll", int(left), int(left % 1 * 1e6))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, pair)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, pair)
        self._timeout = seconds

    def exchange(
        self, parts: Parts, into: memoryview | None, most: int
    ) -> tuple[wire.Header, memoryview]:
        """`Link.exchange`."""
        try:
            self._send(parts)
            buffer = self._scratch if into is None else into
            got = self._receive(buffer, 0)
            while got < wire.BODY:
                got += self._receive(buffer[got:], 0)
            header = wire.read_header(buffer, most)
            length = header.length
            if length > len(buffer):
                larger = memoryview(bytearray(length))
                larger[:got] = buffer[:got]
                buffer = larger
            while got < length:
                got += self._receive(buffer[got:length], socket.MSG_WAITALL)
        except BlockingIOError as error:
            raise TimeoutError("no reply in time") from error
        if got > length or header.request != struct.unpack_from("<Q", parts[0], 16)[0]:
            raise ProtocolError(f"what came is no reply to the request: {header}")
        return header, buffer[:length]

    def ended(self) -> bool:
        """Whether the server is known to have ended the connection, without asking it."""
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP)  # and of errors one is always told
        return bool(poll.poll(0))

    def _receive(self, buffer: memoryview, flags: int) -> int:
        got = self._socket.recv_into(buffer, 0, flags)
        if got == 0:
            raise ConnectionLost("the server closed the connection")
        return got

    def _send(self, parts: Parts) -> None:
        if len(parts) == 1:
            self._socket.sendall(parts[0])
            return
        left = [memoryview(part).cast("B") for part in parts]
        while left:
            sent = self._socket.sendmsg(left[:512])
            while left and sent >= len(left[0]):
                sent -= len(left.pop(0))
            if sent:
                left[0] = left[0][sent:]

    def close(self) -> None:
        """Closes the socket; a second time does nothing."""
        self._socket.close()
