"""TLS over TCP, by Python's ssl module."""

import ssl

from accel_rl.remote.errors import ConnectionLost
from accel_rl.remote.links.address import Address
from accel_rl.remote.links.link import Parts
from accel_rl.remote.links.stream import StreamLink

_JOINED_BYTES = 1 << 20  # of a request up to which copying costs less than a record for each part

_NO_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError)  # of a handshake


class TlsLink(StreamLink):
    """A TCP socket whose bytes nobody can read or change on their way."""

    def __init__(
        self, address: Address, timeout: float | None, context: ssl.SSLContext | None
    ) -> None:
        """Connects, and checks the server's certificate and name.

        Args:
          address: of the server.
          timeout: as of `set_timeout`.
          context: which authorities are trusted; None: those of the system, or of the environment
            variable SSL_CERT_FILE.

        Raises:
          OSError: if nobody answers, or somebody with another certificate.
        """
        super().__init__(address, timeout)
        tcp = self._socket
        context = ssl.create_default_context() if context is None else context
        try:
            # The kernel's timeouts would be taken for a socket that must not block.
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
        """Seconds without a byte after which the connection counts as lost; None: never."""
        if not isinstance(self._socket, ssl.SSLSocket):
            super().set_timeout(seconds)
        elif seconds != self._timeout:
            self._socket.settimeout(seconds)
            self._timeout = seconds

    def _receive(self, buffer: memoryview, flags: int) -> int:
        try:
            return super()._receive(buffer, 0)
        except ssl.SSLError as error:
            raise ConnectionLost(f"TLS failed: {error}") from error

    def _send(self, parts: Parts) -> None:
        if sum(len(part) for part in parts) <= _JOINED_BYTES:
            parts = [b"".join(parts)]
        try:
            for part in parts:
                self._socket.sendall(part)
        except ssl.SSLError as error:
            raise ConnectionLost(f"TLS failed: {error}") from error
