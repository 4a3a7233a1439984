"""A client of the replay memory server: blocking calls over any transport."""

import ssl
import struct

from accel_rl.remote import wire
from accel_rl.remote.calls import Calls
from accel_rl.remote.errors import TableDiffers
from accel_rl.remote.links import Served
from accel_rl.remote.schema import TableSpec, differences
from accel_rl.remote.table import RemoteTable
from accel_rl.remote.wire import Op

_NONE_NEWER = 10


class ReplayClient(Calls):
    """A session with a server.

    Calls wait for their reply; one lock makes them safe from several threads, of which one waits
    for the other. A connection that breaks is made anew: requests are sent again, and the server
    does not push or update twice for it. Forget the client in a forked child.
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
        """Connects to a server.

        Args:
          address: of the server: "tcp://host:port", "tls://host:port", "udp://host:port",
            "unix:/path", "memif:/path", or "shm:/path" for one on this machine that shares memory;
            "shm:/path?busy=1" looks for replies all the time, which is quickest and takes a core.
            Or a `ReplayServer` of this process, which is called without any transport.
          secret: what both sides know; needed if, and only if, the server has one.
          timeout: seconds that a reply may take beyond what the request itself may wait.
          reconnect: seconds for which a lost server is looked for; 0: not at all. Over TCP, TLS and
            Unix sockets a connection that ended while nothing was under way is found ended before a
            change is sent, and made anew.
          tls: of tls, which authorities are trusted; None: those of the system, or of the
            environment variable SSL_CERT_FILE.

        Raises:
          TypeError: if an argument is of another type.
          ValueError: if the address is none, or seconds are negative or not finite.
          ConnectionLost: if nobody answers there.
          AuthenticationFailed: if one side does not know the other one's secret.
        """
        super().__init__(address, secret, timeout, reconnect, tls)
        self._remote: dict[str, RemoteTable] = {}

    def table(self, spec: TableSpec | str, *, create: bool = True) -> RemoteTable:
        """The table of that name, made if there is none and `spec` describes it.

        Raises:
          NoSuchTable: if there is none, and it is not to be made.
          TableDiffers: if there is one that is not as described.
          LimitReached: if the server has no room for it.
          RequestRefused: if the description is not that of a table.
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
        with self.lock:
            header, reply = self.call(frame, f"fetch {name!r}", also=_NONE_NEWER)
            if header.status == _NONE_NEWER:
                return None
            return struct.unpack_from("<Q", reply, 40)[0], bytes(reply[wire.BODY :])

    def stats(self) -> dict[str, int]:
        """What the server counted, by the names of `wire.SERVER_COUNTS`."""
        with self.lock:
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
        with self.lock:
            frame = wire.request_frame(Op.PING, sections=(payload,) if payload else ())
            _, reply = self.call(frame, "ping")
            return bytes(reply[wire.BODY :])
