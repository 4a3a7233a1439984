"""One connection to a replay memory server: how it begins, and requests with their replies."""

import hmac
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

from accel_rl.remote import wire
from accel_rl.remote.errors import AuthenticationFailed, ConnectionLost, ProtocolError, error_of
from accel_rl.remote.wire import Op

_SCRATCH_BYTES = 1 << 16
_HELLO_BYTES = 1 << 12  # most of a reply before both sides know each other

Parts = Sequence[bytes | bytearray | memoryview]


def parse_address(address: str) -> tuple[str, str, int]:
    """("tcp", host, port) or ("unix", path, 0) of "tcp://host:port" or "unix:/path".

    Raises:
      ValueError: if it is neither.
    """
    if address.startswith("unix:"):
        path = address.removeprefix("unix:").removeprefix("//")
        if path:
            return "unix", path, 0
    elif address.startswith("tcp://"):
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        if host and port.isdigit() and int(port) < 1 << 16:
            return "tcp", host.strip("[]"), int(port)
    raise ValueError(f'address must be "tcp://host:port" or "unix:/path", got {address!r}')


def proof(secret: bytes, side: str, transcript: bytes) -> bytes:
    """What shows that `side`, "client" or "server", knows the secret: HMAC-SHA256, 32 bytes."""
    return hmac.digest(secret, b"accel_rl replay 1 " + side.encode() + transcript, "sha256")


class Connection:
    """A connected socket with its session.

    Attributes:
      session: the token of the session.
      resumed: whether it is the session that was asked for.
      frame_bytes: what a frame may have, to this server.
    """

    def __init__(
        self, address: str, secret: bytes | None, resume: int, timeout: float | None
    ) -> None:
        """Connects and introduces itself.

        Raises:
          ConnectionLost: if nobody answers.
          AuthenticationFailed: if one side does not know the other one's secret.
        """
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._timeout: float | None = None
        self.session, self.resumed, self.frame_bytes = 0, False, _HELLO_BYTES
        try:
            self._connect(address, timeout)
        except OSError as error:
            raise ConnectionLost(f"no replay memory server at {address}: {error}") from error
        try:
            self._introduce(secret, resume)
        except OSError as error:
            self.close()
            if isinstance(error, ConnectionLost | AuthenticationFailed):
                raise
            raise ConnectionLost(f"no replay memory server at {address}: {error}") from error
        except BaseException:
            self.close()
            raise

    def _connect(self, address: str, timeout: float | None) -> None:
        """To the first of the host's addresses where somebody listens."""
        kind, host, port = parse_address(address)
        targets: list[tuple[int, Any]] = [(socket.AF_UNIX, host)]
        if kind == "tcp":
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            targets = [(family, target) for family, _, _, _, target in found]
        for number, (family, target) in enumerate(targets):
            self._socket = socket.socket(family, socket.SOCK_STREAM)
            self._timeout = None
            try:
                if kind == "tcp":
                    self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.set_timeout(timeout)
                self._socket.connect(target)
                return
            except BaseException as error:
                self.close()
                if not isinstance(error, OSError) or number == len(targets) - 1:
                    raise

    def _introduce(self, secret: bytes | None, resume: int) -> None:
        nonce = os.urandom(wire.NONCE_BYTES)
        hello = wire.request_frame(Op.HELLO, fixed=struct.pack("<Q", resume) + nonce)
        header, reply = self.exchange([hello])
        transcript = b""
        if header.op == Op.CHALLENGE:
            if secret is None:
                raise AuthenticationFailed("the server asks for a secret, none was given")
            transcript = wire.transcript(bytes(reply[wire.BODY :]), nonce, resume)
            mac = proof(secret, "client", transcript)
            header, reply = self.exchange([wire.request_frame(Op.AUTH, sections=(mac,))])
        elif secret is not None and header.status == 0:
            raise AuthenticationFailed("a secret was given, the server does not ask for one")
        if header.status != 0:
            raise error_of(header.status, "hello", wire.message_of(reply))
        if header.op != Op.WELCOME:
            raise ProtocolError(f"the server answered hello with operation {header.op}")
        if secret is not None:
            expected = proof(secret, "server", transcript + struct.pack("<Q", header.session))
            if not hmac.compare_digest(expected, bytes(reply[wire.BODY :])):
                raise AuthenticationFailed("the server does not know the secret")
        self.session = header.session
        self.frame_bytes, _, _, self.resumed = struct.unpack_from("<III?", reply, 40)

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
        self, parts: Parts, into: memoryview | None = None
    ) -> tuple[wire.Header, memoryview]:
        """Sends a request, given in parts, and returns the reply with its header.

        The reply lies in `into` if it fits there, and otherwise where the next one may go too.

        Raises:
          ConnectionLost: if the connection is at its end.
          TimeoutError: if nothing came in time.
          ProtocolError: if what came is no reply to it.
        """
        try:
            self._send(parts)
            buffer = self._scratch if into is None else into
            got = self._receive(buffer, 0)
            while got < wire.BODY:
                got += self._receive(buffer[got:], 0)
            header = wire.read_header(buffer, self.frame_bytes)
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
