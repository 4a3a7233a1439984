"""Links over TCP, TLS and Unix sockets, in Python.

Measured as fast as a client in C for one call at a time.
"""

import select
import socket
import ssl
import struct
from typing import Any

from accel_rl.remote import wire
from accel_rl.remote.errors import ConnectionLost, ProtocolError
from accel_rl.remote.links.address import Address
from accel_rl.remote.links.link import Parts

_SCRATCH_BYTES = 1 << 16
_FIRST_BYTES = 1 << 26  # of a reply that are believed at once
_JOINED_BYTES = 1 << 20  # of a request up to which one copy is cheaper than a record for each part
_NO_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError)  # in a handshake


class StreamLink:
    """Connected stream socket."""

    def __init__(self, address: Address, timeout: float | None) -> None:
        """Connect to the first of the host's addresses that accepts."""
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
        """Set the seconds without a byte after which the connection is lost; None: never."""
        if seconds == self._timeout:
            return
        # Kernel timeouts, where 0 means none: Python's cost one more system call for each receive.
        left = 0.0 if seconds is None else max(seconds, 1e-3)
        pair = struct.pack("ll", int(left), int(left % 1 * 1e6))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, pair)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, pair)
        self._timeout = seconds

    def exchange(
        self, parts: Parts, into: memoryview | None, most: int
    ) -> tuple[wire.Header, memoryview]:
        """Send a request and return the reply, see `Link.exchange`."""
        try:
            self._send(parts)
            buffer = self._scratch if into is None else into
            got = self._receive(buffer, 0)
            while got < wire.BODY:
                got += self._receive(buffer[got:], 0)
            header = wire.read_header(buffer, most)
            length = header.length
            while got < length:
                if got == len(buffer):  # memory follows what has come, not what was announced
                    larger = memoryview(bytearray(min(length, max(2 * got, _FIRST_BYTES))))
                    larger[:got] = buffer
                    buffer = larger
                got += self._receive(buffer[got:length], socket.MSG_WAITALL)
        except BlockingIOError as error:
            raise TimeoutError("no reply in time") from error
        if got > length or header.request != wire.U64.unpack_from(parts[0], wire.REQUEST_AT)[0]:
            raise ProtocolError(f"what came is no reply to the request: {header}")
        return header, buffer[:length]

    def ended(self) -> bool:
        """Return whether the server has closed the connection, as far as known; send nothing."""
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP)  # errors are always reported, too
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
            sent = self._socket.sendmsg(left[:512])  # Linux takes 1024 parts at most
            while left and sent >= len(left[0]):
                sent -= len(left.pop(0))
            if sent:
                left[0] = left[0][sent:]

    def close(self) -> None:
        """Close the socket. Idempotent."""
        self._socket.close()


class TlsLink(StreamLink):
    """Encrypted and authenticated TCP socket."""

    def __init__(
        self, address: Address, timeout: float | None, context: ssl.SSLContext | None
    ) -> None:
        """Connect, and check the server's certificate and name.

        Args:
          address: of the server.
          timeout: as in `set_timeout`.
          context: trusted authorities; None: those of the system, or of the environment variable
            SSL_CERT_FILE.
        """
        super().__init__(address, timeout)
        tcp = self._socket
        context = ssl.create_default_context() if context is None else context
        try:
            # ssl would take an expired kernel timeout, EAGAIN, for a non-blocking socket.
            super().set_timeout(None)
            tcp.settimeout(timeout)
            self._socket = context.wrap_socket(tcp, server_hostname=address.host)
        except _NO_TLS as error:
            tcp.close()
            raise ConnectionLost(
                "the server ended the TLS handshake: does it speak TLS? Without a certificate its "
                f"address is tcp://{address.host}:{address.port}"
            ) from error
        except BaseException:
            tcp.close()
            raise
        self._timeout = timeout

    def set_timeout(self, seconds: float | None) -> None:
        """Set the seconds without a byte after which the connection is lost; None: never."""
        if not isinstance(self._socket, ssl.SSLSocket):
            super().set_timeout(seconds)
        elif seconds != self._timeout:
            self._socket.settimeout(seconds)
            self._timeout = seconds

    def _receive(self, buffer: memoryview, flags: int) -> int:
        try:
            return super()._receive(buffer, 0)  # SSL sockets take no flags
        except ssl.SSLError as error:
            raise ConnectionLost(f"TLS failed: {error}") from error

    def _send(self, parts: Parts) -> None:
        if sum(len(part) for part in parts) <= _JOINED_BYTES:
            parts = [b"".join(parts)]
        try:
            for part in parts:
                self._socket.sendall(part)  # SSL sockets have no sendmsg
        except ssl.SSLError as error:
            raise ConnectionLost(f"TLS failed: {error}") from error
