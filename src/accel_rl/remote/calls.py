"""Requests of a session, with reconnection and safe resending."""

import contextlib
import functools
import ssl
import threading
import time

from accel_rl.arguments import within
from accel_rl.remote import wire
from accel_rl.remote.closing import Closing
from accel_rl.remote.connection import Connection
from accel_rl.remote.errors import (
    NO_SUCH_TABLE,
    ConnectionLost,
    LimitReached,
    OutcomeUnknown,
    ProtocolError,
    error_of,
)
from accel_rl.remote.links import Parts, Served, open_link
from accel_rl.remote.links.stream import StreamLink
from accel_rl.remote.schema import TableSpec
from accel_rl.remote.wire import Op

_CHANGES = (Op.PUSH, Op.UPDATE, Op.PUBLISH, Op.DELETE)  # unknown outcome if the reply is lost


class Numbered:
    """Table with the number that the server currently uses for it.

    Attributes:
      spec: the server's specification of the table.
      number: table number on the server.
      former_number: table number before the last reconnection.
    """

    def __init__(self, spec: TableSpec, number: int) -> None:
        self.spec = spec
        self.number = self.former_number = number


class Calls(Closing):
    """Session with a server, one request at a time.

    Attributes:
      lock: held during a request; hold it while reading a reply that the next may overwrite.
      most_items: the server's limit on the items of a push, sample or update.
    """

    def __init__(
        self,
        address: str | Served,
        secret: bytes | None,
        timeout: float | None,
        reconnect: float,
        tls: ssl.SSLContext | None,
    ) -> None:
        for name, seconds in (("timeout", timeout), ("reconnect", reconnect)):
            if seconds is not None:
                within(name, seconds, "[0, inf)")
        self.address = address
        self.lock = threading.RLock()
        self._secret, self._timeout, self._reconnect = secret, timeout, reconnect
        self._open = functools.partial(open_link, tls=tls)
        self._request = 0
        self._session = 0
        self._closed = False
        self._tables: dict[str, Numbered] = {}
        self._connection: Connection | None = None
        self.most_items = 0
        self._connect(once=True)

    def call(
        self,
        head: bytearray,
        what: str,
        rest: Parts = (),
        into: memoryview | None = None,
        wait: float = 0.0,
        also: int = 0,
    ) -> tuple[wire.Header, memoryview]:
        """Send a request and return the reply; building block of all other calls.

        Args:
          head: start of the frame, at least 64 bytes; session, request number and, after a
            reconnection, table number are filled in.
          what: the request in words, for error messages.
          rest: remaining parts of the frame.
          into: buffer for the reply.
          wait: seconds that the request itself may wait at the server.
          also: status besides 0 that is not an error.

        Returns:
          The reply's header, and the reply. Unless it lies in `into`, the next call may overwrite
          it: hold the lock while reading it.
        """
        with self.lock:
            if self._closed:
                raise ConnectionLost("the client is closed")
            self._request += 1
            wire.SESSION_AND_REQUEST.pack_into(head, wire.SESSION_AT, self._session, self._request)
            parts = [head, *rest] if rest else [head]
            if self._reconnect > 0 and head[wire.OP_AT] in _CHANGES and self._has_ended():
                self._drop()  # or the outcome of the change would be unknown
            if self._connection is None:  # nothing is sent yet, so a failure is no unknown outcome
                try:
                    self._connect()
                except (TimeoutError, ConnectionError) as error:
                    raise ConnectionLost(f"{what}: {error}") from error
                self._address_again(head)
            self._check_bytes(head, what)
            try:
                header, reply = self._exchange(parts, into, wait)
            except (TimeoutError, ConnectionError) as error:
                header, reply = self._try_again(parts, into, wait, what, error)
            if header.status not in (0, also):
                raise error_of(header.status, what, wire.message_of(reply))
            return header, reply

    def _check_bytes(self, head: bytearray, what: str) -> None:
        """Raise LimitReached for a request that the server would end the connection for."""
        assert self._connection is not None
        most = self._connection.frame_bytes
        if (count := wire.U32.unpack_from(head, wire.LENGTH_AT)[0]) > most:
            raise LimitReached(
                f"{what}: the request takes {count:,} bytes, the server's limit frame_bytes allows "
                f"{most:,}"
            )

    @property
    def session(self) -> int:
        """Token of the session; another one once the server has forgotten it, as by a restart."""
        return self._session

    def _has_ended(self) -> bool:
        """Return whether the connection is known to have ended; always False for native links."""
        link = None if self._connection is None else self._connection.link
        return isinstance(link, StreamLink) and link.ended()

    def _exchange(
        self, parts: Parts, into: memoryview | None, wait: float
    ) -> tuple[wire.Header, memoryview]:
        connection = self._connection
        assert connection is not None
        try:
            if self._timeout is not None:
                connection.link.set_timeout(self._timeout + wait)
            return connection.link.exchange(parts, into, connection.frame_bytes)
        except BaseException:  # a late reply may still arrive on this connection
            self._drop()
            raise

    def _try_again(
        self, parts: list, into: memoryview | None, wait: float, what: str, error: OSError
    ) -> tuple[wire.Header, memoryview]:
        """Reconnect and send a failed request once more, if that is safe."""
        changes = parts[0][wire.OP_AT] in _CHANGES
        kind = OutcomeUnknown if changes else ConnectionLost
        if isinstance(error, TimeoutError):
            raise kind(f"{what}: no reply within {self._timeout} s") from error
        if self._reconnect <= 0:
            raise kind(f"{what}: {error}") from error
        session = self._session
        try:
            self._connect()
        except ConnectionError as again:
            raise kind(f"{what}: the connection broke: {again}") from error
        # The server recognises a repeated request only within the same session.
        if self._session != session and changes:
            raise OutcomeUnknown(f"{what}: the connection broke before the reply") from error
        self._address_again(parts[0])
        try:
            return self._exchange(parts, into, wait)
        except (TimeoutError, ConnectionError) as again:
            raise kind(f"{what}: the connection broke twice: {again}") from again

    def _address_again(self, head: bytearray) -> None:
        """Write the current session and table number into a request."""
        wire.U64.pack_into(head, wire.SESSION_AT, self._session)
        if (number := wire.U16.unpack_from(head, wire.TABLE_AT)[0]) == wire.NO_TABLE:
            return
        for table in self._tables.values():
            if number == table.former_number:
                wire.U16.pack_into(head, wire.TABLE_AT, table.number)
                return

    def _connect(self, once: bool = False) -> None:
        """Connect; resume the session if the server still has it."""
        end = time.monotonic() + self._reconnect
        pause = 0.01
        while True:
            try:
                connection = Connection(
                    self.address, self._secret, self._session, self._timeout, self._open
                )
                break
            except (ConnectionLost, LimitReached):  # there may be room again soon
                if once or time.monotonic() + pause > end:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 0.5)
        self._connection = connection
        self._session, self.most_items = connection.session, connection.most_items
        for table in self._tables.values():
            table.former_number = table.number
        if not connection.resumed:
            try:
                self._open_again()
            except BaseException:
                self._drop()
                self._session = 0  # or the next would resume it with outdated table numbers
                raise

    def _open_again(self) -> None:
        """Reopen the tables in a new session; renumber all of them or none.

        A table that the server does not have any more loses its number, so that its own calls raise
        NoSuchTable, and no others.
        """
        numbers = []
        for table in self._tables.values():
            self._request += 1
            frame = wire.describe(table.spec, create=False)
            wire.SESSION_AND_REQUEST.pack_into(frame, wire.SESSION_AT, self._session, self._request)
            header, reply = self._exchange([frame], None, 0.0)
            if header.status == NO_SUCH_TABLE:
                numbers.append(wire.NO_TABLE)
                continue
            if header.status != 0:
                self._drop()
                raise error_of(
                    header.status, f"open table {table.spec.name!r} again", wire.message_of(reply)
                )
            numbers.append(header.table)
        for table, number in zip(self._tables.values(), numbers, strict=True):
            table.number = number

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """End the session. Idempotent."""
        with self.lock:
            if self._closed:
                return
            if self._connection is not None:
                with contextlib.suppress(OSError, ProtocolError):
                    self._request += 1
                    frame = wire.request_frame(Op.BYE, session=self._session, request=self._request)
                    self._exchange([frame], None, 0.0)
            self._drop()
            self._closed = True
