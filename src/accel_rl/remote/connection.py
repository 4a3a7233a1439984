"""Connection to a replay server: the handshake and the resulting session."""

import hmac
import os
from collections.abc import Callable
from typing import Any

from accel_rl.remote import wire
from accel_rl.remote.errors import AuthenticationFailed, ConnectionLost, ProtocolError, error_of
from accel_rl.remote.links import Link, Served, open_link
from accel_rl.remote.wire import Op

_HELLO_BYTES = 1 << 12  # limit of a reply during the handshake


def proof(secret: bytes, side: str, transcript: bytes) -> bytes:
    """Return the proof that `side`, "client" or "server", knows the secret.

    It is an HMAC-SHA256 of 32 bytes.
    """
    return hmac.digest(secret, b"accel_rl replay 1 " + side.encode() + transcript, "sha256")


class Connection:
    """Link with its session.

    Attributes:
      link: carries requests and replies.
      session: token of the session.
      resumed: True if the requested session was resumed.
      frame_bytes: the server's limit on the bytes of a frame.
      most_items: the server's limit on the items of a push, sample or update.
    """

    def __init__(
        self,
        address: str | Served,
        secret: bytes | None,
        resume: int,
        timeout: float | None,
        opener: Callable[[Any, float | None], Link] = open_link,
    ) -> None:
        """Connect and perform the handshake.

        Args:
          address: of the server, or a server in this process.
          secret: shared secret, or None.
          resume: token of a session to resume, or 0.
          timeout: seconds that each step may take; None: no limit.
          opener: makes the link from an address and a timeout.

        Raises:
          ConnectionLost: if no server answers.
          AuthenticationFailed: if client and server do not have the same secret.
        """
        self.session, self.resumed, self.frame_bytes, self.most_items = 0, False, _HELLO_BYTES, 0
        try:
            self.link = opener(address, timeout)
        except OSError as error:
            raise ConnectionLost(f"no replay server at {address}: {error}") from error
        try:
            self._introduce(secret, resume)
        except OSError as error:
            self.close()
            if isinstance(error, ConnectionLost | AuthenticationFailed):
                raise
            raise ConnectionLost(f"no replay server at {address}: {error}") from error
        except BaseException:
            self.close()
            raise

    def _introduce(self, secret: bytes | None, resume: int) -> None:
        nonce = os.urandom(wire.NONCE_BYTES)
        # Identifies this client's datagrams before there is a session.
        (key,) = wire.U64.unpack(os.urandom(8))
        fixed = wire.HELLO.pack(resume, nonce)
        hello = wire.request_frame(Op.HELLO, session=key, request=1, fixed=fixed)
        header, reply = self._early(hello)
        transcript = b""
        if header.op == Op.CHALLENGE:
            if secret is None:
                raise AuthenticationFailed("the server asks for a secret, none was given")
            transcript = wire.transcript(bytes(reply[wire.BODY :]), nonce, resume)
            mac = proof(secret, "client", transcript)
            auth = wire.request_frame(Op.AUTH, session=key, request=2, sections=(mac,))
            header, reply = self._early(auth)
        elif secret is not None and header.status == 0:
            raise AuthenticationFailed("a secret was given, the server does not ask for one")
        if header.status != 0:
            raise error_of(header.status, "hello", wire.message_of(reply))
        if header.op != Op.WELCOME:
            raise ProtocolError(f"the server answered hello with operation {header.op}")
        if secret is not None:
            expected = proof(secret, "server", transcript + wire.U64.pack(header.session))
            if not hmac.compare_digest(expected, bytes(reply[wire.BODY :])):
                raise AuthenticationFailed("the server does not know the secret")
        self.session = header.session
        welcome = wire.WELCOME.unpack_from(reply, wire.FIXED)
        self.frame_bytes, self.most_items, _, resumed = welcome
        self.resumed = bool(resumed)

    def _early(self, frame: bytearray) -> tuple[wire.Header, memoryview]:
        return self.link.exchange([frame], None, _HELLO_BYTES)

    def close(self) -> None:
        """Close the link. Idempotent."""
        self.link.close()
