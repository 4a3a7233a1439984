"""Blocking client of the replay server, over any transport."""

import ssl

from accel_rl.remote import wire
from accel_rl.remote.calls import Calls
from accel_rl.remote.errors import TableDiffers
from accel_rl.remote.links import Served
from accel_rl.remote.schema import TableSpec, differences
from accel_rl.remote.table import RemoteTable
from accel_rl.remote.wire import Op

_NONE_NEWER = 10


class ReplayClient(Calls):
    """Session with a replay server.

    Calls wait for their reply. The client is thread-safe: a lock serialises calls. After a broken
    connection it reconnects and resends the request; the server does not apply a push or update
    twice. Do not use the client in a forked child.
    """

    def __init__(
        self,
        address: str | Served,
        secret: bytes | None = None,
        *,
        timeout: float | None = 30.0,
        reconnect: float = 10.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Connect to a server.

        Args:
          address: of the server: "tcp://host:port", "tls://host:port", "udp://host:port",
            "unix:/path", "memif:/path", or "shm:/path" for shared memory with a server on this
            machine; "shm:/path?busy=1" polls for replies, which is fastest and occupies a core.
            Or a `ReplayServer` of this process, which is called without any transport.
          secret: shared secret; required if, and only if, the server has one.
          timeout: seconds to wait for a reply, in addition to the request's own `wait`; None: no
            limit.
          reconnect: seconds for which to try to reach a lost server; 0: do not reconnect. Over TCP,
            TLS and Unix sockets, a connection that ended while idle is detected, and replaced,
            before a change is sent.
          tls: trusted authorities for tls addresses; None: those of the system, or of the
            environment variable SSL_CERT_FILE.

        Raises:
          ValueError: if the address is malformed, or seconds are negative or not finite.
          ConnectionLost: if no server answers.
          AuthenticationFailed: if client and server do not have the same secret.
        """
        super().__init__(address, secret, timeout, reconnect, tls)
        self._remote: dict[str, RemoteTable] = {}

    def table(self, spec: TableSpec | str, *, create: bool = True) -> RemoteTable:
        """Open a table; create a missing one if `create` is set and `spec` is a `TableSpec`.

        Raises:
          NoSuchTable: if the table does not exist and is not created.
          TableDiffers: if the existing table differs from `spec`.
          LimitReached: if the server has no room for the table.
          RequestRefused: if `spec` is invalid.
        """
        name = spec if isinstance(spec, str) else spec.name
        what = f"open table {name!r}"
        with self.lock:
            try:
                header, reply = self.call(wire.describe(spec, create), what)
            except TableDiffers as error:
                if isinstance(spec, str):
                    raise
                _, reply = self.call(wire.describe(name, create=False), what)
                how = differences(spec, wire.described(reply))
                raise TableDiffers(f"{error}: {how}", error.status) from None
            found = wire.described(reply)
            table = self._remote.get(found.name)
            if table is None:
                table = self._remote[found.name] = RemoteTable(self, found, header.table)
                self._tables[found.name] = table
            table.number = header.table
            return table

    def publish(self, name: str, version: int, value: bytes | memoryview) -> None:
        """Store `value` in the mailbox under `name`; versions start at 0 or above and increase.

        Raises:
          ValueError: if the version is not an unsigned 64-bit integer.
          RequestRefused: if the version is not above the stored one.
          LimitReached: if the mailbox is full.
        """
        wire.check_u64("version", version)
        label = name.encode()
        data = memoryview(value).cast("B")
        fixed = wire.PUBLISH.pack(version, len(data), len(label))
        self.call(
            wire.request_frame(Op.PUBLISH, fixed=fixed, sections=(label, data)), f"publish {name!r}"
        )

    def fetch(self, name: str, newer_than: int | None = None) -> tuple[int, bytes] | None:
        """Return the newest version and value of `name`, or None if there is none (newer)."""
        label = name.encode()
        fixed = wire.FETCH.pack(newer_than or 0, newer_than is None, len(label))
        frame = wire.request_frame(Op.FETCH, fixed=fixed, sections=(label,))
        with self.lock:
            header, reply = self.call(frame, f"fetch {name!r}", also=_NONE_NEWER)
            if header.status == _NONE_NEWER:
                return None
            (version,) = wire.FETCH_REPLY.unpack_from(reply, wire.FIXED)
            return version, bytes(reply[wire.BODY :])

    def tables(self) -> list[TableSpec]:
        """Return the specifications of all tables, in the order in which they were made."""
        found: list[TableSpec] = []
        number = 0
        with self.lock:
            while True:
                frame = wire.request_frame(Op.NEXT_TABLE, fixed=wire.NEXT_TABLE.pack(number))
                header, reply = self.call(frame, "list tables", also=_NONE_NEWER)
                if header.status == _NONE_NEWER:
                    return found
                found.append(wire.described(reply))
                number = header.table + 1

    def delete_table(self, name: str) -> None:
        """Delete a table; who waits for it, or uses it still, gets NoSuchTable.

        Raises:
          NoSuchTable: if the table does not exist.
          SnapshotFailed: while a snapshot is being written.
        """
        self._delete(name, False, f"delete table {name!r}")
        with self.lock:
            self._remote.pop(name, None)
            self._tables.pop(name, None)

    def delete_message(self, name: str) -> None:
        """Delete a name from the mailbox; its versions may begin anew.

        Raises:
          RequestRefused: if the mailbox does not have the name.
        """
        self._delete(name, True, f"delete message {name!r}")

    def _delete(self, name: str, message: bool, what: str) -> None:
        label = name.encode()
        fixed = wire.DELETE.pack(message, len(label))
        self.call(wire.request_frame(Op.DELETE, fixed=fixed, sections=(label,)), what)

    def drain(self) -> None:
        """Ask the server for its end: it takes no more sessions and pushes.

        `accel-rl replay-server` then answers what waits, writes its last snapshot and ends; a
        `ReplayServer` only says so in its `stats`.
        """
        self.call(wire.request_frame(Op.DRAIN), "drain")

    def stats(self) -> dict[str, int]:
        """Return the server's counters, by the names of `wire.SERVER_COUNTS`."""
        with self.lock:
            _, reply = self.call(wire.request_frame(Op.STATS), "stats")
            return wire.counts_of(wire.SERVER_COUNTS, reply)

    def snapshot(self, timeout: float = 600.0) -> None:
        """Make the server write a snapshot; wait at most `timeout` seconds until it is on disk.

        Raises:
          SnapshotFailed: if the server has no snapshot path, is writing one, or cannot write.
        """
        self.call(wire.request_frame(Op.SNAPSHOT), "snapshot", wait=timeout)

    def ping(self, payload: bytes = b"") -> bytes:
        """Return the payload after a round trip."""
        with self.lock:
            frame = wire.request_frame(Op.PING, sections=(payload,) if payload else ())
            _, reply = self.call(frame, "ping")
            return bytes(reply[wire.BODY :])
