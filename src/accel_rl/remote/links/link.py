"""What a link does."""

from collections.abc import Sequence
from typing import Any, Protocol

from accel_rl.remote import wire

Parts = Sequence[bytes | bytearray | memoryview]


class Link(Protocol):
    """A way to a server, for one thread at a time."""

    def set_timeout(self, seconds: float | None) -> None:
        """Seconds without a reply after which the server counts as lost; None: never."""

    def exchange(
        self, parts: Parts, into: memoryview | None, most: int
    ) -> tuple[wire.Header, memoryview]:
        """Sends a request, given in parts, and returns the reply with its header.

        The reply, of at most `most` bytes, lies in `into` if it fits there, and otherwise where the
        next one may go too.

        Raises:
          ConnectionError: if the connection is at its end.
          TimeoutError: if nothing came in time.
          ProtocolError: if what came is no reply to it.
        """

    def close(self) -> None:
        """Ends it; a second time does nothing."""


class Served(Protocol):
    """What takes the place of an address: a server in this process, or another way to one."""

    def open_link(self) -> Any:
        """A new `Link`, or one as the native module makes it."""
