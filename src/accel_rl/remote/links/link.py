"""Interfaces of links and of servers in this process."""

from collections.abc import Sequence
from typing import Any, Protocol

from accel_rl.remote import wire

Parts = Sequence[bytes | bytearray | memoryview]


class Link(Protocol):
    """Connection that exchanges frames with a server; not thread-safe."""

    def set_timeout(self, seconds: float | None) -> None:
        """Set the seconds without a reply after which the server counts as lost; None: never."""

    def exchange(
        self, parts: Parts, into: memoryview | None, most: int
    ) -> tuple[wire.Header, memoryview]:
        """Send a request, given in parts; return the header of the reply, and the reply.

        The reply, of at most `most` bytes, lies in `into` if it fits there; otherwise in memory
        that the next reply may overwrite.

        Raises:
          ConnectionError: if the connection has ended.
          TimeoutError: if no reply came in time.
          ProtocolError: if the bytes received are not a reply to the request.
        """

    def close(self) -> None:
        """Close the link. Idempotent."""


class Served(Protocol):
    """Object in place of an address: a server in this process, or a custom transport."""

    def open_link(self) -> Any:
        """Return a new `Link`, or a link of the native module."""
