"""TLS over TCP, with Python's ssl module."""

import ssl

from accel_rl.remote.errors import ConnectionLost
from accel_rl.remote.links.address import Address
from accel_rl.remote.links.link import Parts
from accel_rl.remote.links.stream import StreamLink

_JOINED_BYTES = 1 << 20  # of a request up to which one copy is cheaper than a record for each part

_NO_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError)  # in a handshake


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

        Raises:
          OSError: if no server answers, or its certificate is not valid for the address.
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
