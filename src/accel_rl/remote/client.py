"""A client of the replay memory server: blocking calls over TCP or a Unix socket."""

import contextlib
import struct
import threading
import time

from accel_rl.remote import wire
from accel_rl.remote.closing import Closing
from accel_rl.remote.connection import Connection, Parts, parse_address
from accel_rl.remote.errors import ConnectionLost, OutcomeUnknown, ProtocolError, error_of
from accel_rl.remote.schema import TableSpec
from accel_rl.remote.table import RemoteTable
from accel_rl.remote.wire import Op

_NONE_NEWER = 10


class ReplayClient(Closing):
    """A session with a server.

    Calls wait for their reply; one lock makes them safe from several threads, of which one waits
    for the other. A connection that breaks is made anew: requests are sent again, and the server
    does not push or update twice for it. Forget the client in a forked child.
    """

    def __init__(
        self,
        address: str,
        secret: bytes | None = None,
        *,
        timeout: float | None = 30.0,
        reconnect: float = 10.0,
    ) -> None:
        """Connects to `address`, "tcp://host:port" or "unix:/path".

        Args:
          address: of the server.
          secret: what both sides know; needed if, and only if, the server has one.
          timeout: seconds that a reply may take beyond what the request itself may wait.
          reconnect: seconds for which a lost server is looked for; 0: not at all.

        Raises:
          ConnectionLost: if nobody answers there.
          AuthenticationFailed: if one side does not know the other one's secret.
        """
        parse_address(address)
        self.address = address
        self._secret, self._timeout, self._reconnect = secret, timeout, reconnect
        self._lock = threading.RLock()
        self._request = 0
        self._session = 0
        self._closed = False
        self._tables: dict[str, RemoteTable] = {}
        self._connection: Connection | None = None
        self._connect(once=True)

    def table(self, spec: TableSpec | str, *, create: bool = True) -> RemoteTable:
        """The table of that name, made if there is none and `spec` describes it.

        Raises:
          NoSuchTable: if there is none, and it is not to be made.
          TableDiffers: if there is one that is not as described.
          LimitReached: if the server has no room for it.
          RequestRefused: if the description is not that of a table.
        """
        with self._lock:
            header, reply = self.call(wire.describe(spec, create), f"open table {spec!r}")
            found = wire.described(reply)
            table = self._tables.get(found.name)
            if table is None:
                table = self._tables[found.name] = RemoteTable(self, found, header.table)
            table.number = header.table
            return table

    def publish(self, name: str, version: int, value: bytes | memoryview) -> None:
        """Puts `value` into the mailbox under `name`; versions must grow, from 0 on.

        Raises:
          ValueError: if the version is no u64.
          RequestRefused: if the version is not above that which is there.
          LimitReached: if the mailbox is full.
        """
        wire.check_u64("version", version)
        label = name.encode()
        data = memoryview(value).cast("B")
        fixed = struct.pack("<QIHHQ", version, len(data), len(label), 0, 0)
        self.call(
            wire.request_frame(Op.PUBLISH, fixed=fixed, sections=(label, data)), f"publish {name!r}"
        )

    def fetch(self, name: str, newer_than: int | None = None) -> tuple[int, bytes] | None:
        """Version and value of what was published last, or None: nothing (newer) is there."""
        label = name.encode()
        fixed = struct.pack("<QB3xHHQ", newer_than or 0, newer_than is None, len(label), 0, 0)
        frame = wire.request_frame(Op.FETCH, fixed=fixed, sections=(label,))
        with self._lock:
            header, reply = self.call(frame, f"fetch {name!r}", also=_NONE_NEWER)
            if header.status == _NONE_NEWER:
                return None
            return struct.unpack_from("<Q", reply, 40)[0], bytes(reply[wire.BODY :])

    def stats(self) -> dict[str, int]:
        """What the server counted, by the names of `wire.SERVER_COUNTS`."""
        with self._lock:
            _, reply = self.call(wire.request_frame(Op.STATS), "stats")
            counts = struct.unpack_from(f"<{len(wire.SERVER_COUNTS)}Q", reply, wire.BODY)
        return dict(zip(wire.SERVER_COUNTS, counts, strict=True))

    def snapshot(self, timeout: float = 600.0) -> None:
        """Has the server write its snapshot, and waits until it is on the disk, or for `timeout` s.

        Raises:
          SnapshotFailed: if it has no path for it, is writing one, or cannot write.
        """
        self.call(wire.request_frame(Op.SNAPSHOT), "snapshot", wait=timeout)

    def ping(self, payload: bytes = b"") -> bytes:
        """The payload, after a round trip."""
        with self._lock:
            frame = wire.request_frame(Op.PING, sections=(payload,) if payload else ())
            _, reply = self.call(frame, "ping")
            return bytes(reply[wire.BODY :])

    def call(
        self,
        head: bytearray,
        what: str,
        rest: Parts = (),
        into: memoryview | None = None,
        wait: float = 0.0,
        also: int = 0,
    ) -> tuple[wire.Header, memoryview]:
        """Sends a request and returns the reply, for the client's own parts.

        Args:
          head: the frame's beginning, 64 bytes at least; session, number and table are put in.
          what: the request, in words.
          rest: what follows in the frame.
          into: where the reply goes.
          wait: seconds that the request itself may wait at the server.
          also: a status other than 0 that is no error.

        Returns:
          The reply's header, and the reply, which the next call may overwrite unless it lies in
          `into`: a caller that reads it holds the lock.
        """
        with self._lock:
            if self._closed:
                raise ConnectionLost("the client is closed")
            self._request += 1
            struct.pack_into("<QQ", head, 8, self._session, self._request)
            parts = [head, *rest] if rest else [head]
            try:
                if self._connection is None:
                    self._connect()
                    self._address_again(head)
                header, reply = self._exchange(parts, into, wait)
            except (TimeoutError, ConnectionError) as error:
                header, reply = self._try_again(parts, into, wait, what, error)
            if header.status not in (0, also):
                raise error_of(header.status, what, wire.message_of(reply))
            return header, reply

    def _exchange(
        self, parts: Parts, into: memoryview | None, wait: float
    ) -> tuple[wire.Header, memoryview]:
        connection = self._connection
        if connection is None:
            raise ConnectionLost("there is no connection")
        try:
            if self._timeout is not None:
                connection.set_timeout(self._timeout + wait)
            return connection.exchange(parts, into)
        except BaseException:  # what comes next on this connection, nobody knows
            self._drop()
            raise

    def _try_again(
        self, parts: list, into: memoryview | None, wait: float, what: str, error: OSError
    ) -> tuple[wire.Header, memoryview]:
        """After the connection broke: once more, if that is safe."""
        changes = parts[0][5] in (Op.PUSH, Op.UPDATE, Op.PUBLISH)
        if isinstance(error, TimeoutError):
            kind = OutcomeUnknown if changes else ConnectionLost
            raise kind(f"{what}: no reply within {self._timeout} s") from error
        if self._reconnect <= 0:
            kind = OutcomeUnknown if changes else ConnectionLost
            raise kind(f"{what}: {error}") from error
        session = self._session
        self._connect()
        if self._session != session and changes:
            raise OutcomeUnknown(f"{what}: the connection broke before the reply") from error
        self._address_again(parts[0])
        try:
            return self._exchange(parts, into, wait)
        except (TimeoutError, ConnectionError) as again:
            kind = OutcomeUnknown if changes else ConnectionLost
            raise kind(f"{what}: the connection broke twice: {again}") from again

    def _address_again(self, head: bytearray) -> None:
        """Puts into a request the session, and the number that its table has by now."""
        struct.pack_into("<Q", head, 8, self._session)
        if (number := struct.unpack_from("<H", head, 24)[0]) == wire.NO_TABLE:
            return
        for table in self._tables.values():
            if number == table.former_number:
                struct.pack_into("<H", head, 24, table.number)
                return

    def _connect(self, once: bool = False) -> None:
        """Connects, with the session there was if the server still has it."""
        end = time.monotonic() + self._reconnect
        pause = 0.01
        while True:
            try:
                connection = Connection(self.address, self._secret, self._session, self._timeout)
                break
            except ConnectionLost:
                if once or time.monotonic() + pause > end:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 0.5)
        self._connection = connection
        self._session = connection.session
        for table in self._tables.values():
            table.former_number = table.number
        if not connection.resumed:
            try:
                self._open_again()
            except BaseException:
                self._drop()
                self._session = 0  # or the next would go on with it, and with numbers of the last
                raise

    def _open_again(self) -> None:
        """Has a server that knows nothing of this client number its tables, all or none."""
        numbers = []
        for table in self._tables.values():
            self._request += 1
            frame = wire.describe(table.spec, create=False)
            struct.pack_into("<QQ", frame, 8, self._session, self._request)
            header, reply = self._exchange([frame], None, 0.0)
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
        """Ends the session; a second time does nothing."""
        with self._lock:
            if self._closed:
                return
            if self._connection is not None:
                with contextlib.suppress(OSError, ProtocolError):
                    frame = wire.request_frame(Op.BYE, session=self._session)
                    self._exchange([frame], None, 0.0)
            self._drop()
            self._closed = True
