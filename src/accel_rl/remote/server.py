"""Replay server in a thread of this process."""

import os
import warnings
from collections.abc import Sequence
from typing import Any, Literal, get_args

from accel_rl.arguments import whole
from accel_rl.remote import wire
from accel_rl.remote.closing import Closing
from accel_rl.remote.errors import error_of
from accel_rl.remote.holding import SnapshotPlace
from accel_rl.remote.module import native

LEAST_SECRET_BYTES = 16
DPDK_MTUS = (1280, 9000)  # from what IPv6 demands to usual jumbo frames
Idle = Literal["block", "spin", "yield", "sleep"]
Durability = Literal["none", "snapshot", "log"]
DURABILITIES: tuple[Durability, ...] = get_args(Durability)


class ReplayServer(Closing):
    """Replay server, in a C++ thread that runs without the GIL.

    The arguments select the transports: TCP, UDP, a Unix socket, shared memory and DPDK. Clients in
    this process take the server in place of an address.

    Attributes:
      addresses: addresses for clients: "tcp://host:port", or "tls://host:port" with a certificate;
        "udp://host:port", "unix:/path", "shm:/path"; with DPDK also "memif:/path?id=number".
    """

    def __init__(
        self,
        host: str | None = "127.0.0.1",
        port: int = 0,
        *,
        udp_port: int | None = None,
        unix_path: str | os.PathLike[str] | None = None,
        shm_path: str | os.PathLike[str] | None = None,
        secret: bytes | None = None,
        tls_certificate: str | os.PathLike[str] | None = None,
        tls_key: str | os.PathLike[str] | None = None,
        snapshot_path: str | os.PathLike[str] | None = None,
        durability: Durability | None = None,
        dpdk: Sequence[str] | None = None,
        dpdk_address: str = "169.254.77.1",
        dpdk_port: int = 7077,
        dpdk_mtu: int = 1500,
        in_network: bool = False,
        idle: Idle = "block",
        **settings: int,
    ) -> None:
        """Start serving.

        Args:
          host: numeric address to listen on for TCP; None: no TCP. An address that other machines
            can reach needs a secret.
          port: TCP port; 0: a free one.
          udp_port: UDP port on the same host; 0: a free one, None: no UDP.
          unix_path: of a Unix socket, which only this user may open; None: none.
          shm_path: of another Unix socket, which hands shared memory to clients on this machine;
            None: none.
          secret: shared secret that clients must prove to know, at least 16 bytes; never sent.
          tls_certificate: PEM file with the certificate chain: TCP is TLS 1.3. None: TCP is not
            encrypted.
          tls_key: PEM file of the certificate's key, without a password.
          snapshot_path: file for snapshots. The server begins with what it and its log hold, and
            creates a missing folder. No other server may use the file at the same time.
          durability: what a server that is killed begins with again. "none": nothing. "snapshot":
            the last snapshot. "log": also what changed since, but for the last `log_ms`
            milliseconds, 100 by default; sessions go on, too. None: "snapshot" with a
            `snapshot_path`, "none" without.
          dpdk: arguments of DPDK's environment, such as ["--no-huge", "--vdev=net_memif0,..."]. The
            server serves all ports that they name, and `idle` must not be "block". None: no DPDK.
            Ports other than memif sockets need a secret. See docs/replay-dpdk.md.
          dpdk_address: IPv4 or IPv6 address of the server on those ports.
          dpdk_port: UDP port of the server on those ports.
          dpdk_mtu: maximum transmission unit of those ports, 1,280 to 9,000 bytes.
          in_network: the two DPDK ports lie in a network's path: the server forwards packets that
            are not addressed to it from one port to the other.
          idle: action of the serving thread when there is no work. "block": poll for `linger_us`
            microseconds after a request, 50 by default, then wait for the kernel. "spin": poll
            continuously, for the lowest latency; occupies a core. "yield": poll after yielding the
            core to other threads. "sleep": poll after `sleep_us` microseconds, 50 by default.
          **settings: limits, by the names of docs/replay-server.md, such as connections.

        Raises:
          ValueError: if a port is out of range, an address cannot be listened on, a setting is
            unknown, a required secret is missing, a certificate is invalid, or the server was built
            without OpenSSL, which secrets and TLS need.
          SnapshotFailed: if the snapshot is damaged and there is no older one, of another version,
            or used by another server, or the path is not writable.
          ImportError: if the server was not built.
        """
        module = native()
        for name, number in (("port", port), ("udp_port", udp_port)):
            if number is not None:
                whole(name, number, 0, (1 << 16) - 1)
        if secret is not None and len(secret) < LEAST_SECRET_BYTES:
            raise ValueError(
                f"secret must have {LEAST_SECRET_BYTES} bytes or more, got {len(secret)}"
            )
        if in_network and dpdk is None:
            raise ValueError("in_network takes dpdk, whose two ports are in the path")
        whole("dpdk_port", dpdk_port, 1, (1 << 16) - 1)
        whole("dpdk_mtu", dpdk_mtu, *DPDK_MTUS)
        if (tls_certificate is None) != (tls_key is None) or (tls_key and host is None):
            raise ValueError("tls_certificate, tls_key and host must be given together")
        if host is None and udp_port is not None:
            raise ValueError(f"host must say where to listen on udp_port {udp_port}, got None")
        if durability is None:
            durability = "none" if snapshot_path is None else "snapshot"
        elif durability not in DURABILITIES:
            raise ValueError(f"durability must be one of {DURABILITIES}, got {durability!r}")
        elif (durability == "none") != (snapshot_path is None):
            wants = "no snapshot_path" if durability == "none" else "a snapshot_path"
            raise ValueError(f"durability {durability!r} takes {wants}")
        self._error = module.Error
        given = module.ServerSettings()
        given.idle = idle
        for name, value in settings.items():
            _set_limit(given, name, value)
        if snapshot_path is not None:
            given.snapshot_path = os.fspath(snapshot_path)
        given.log = durability == "log"
        self._server = module.Server(given, secret)
        self.addresses: list[str] = []
        self._place = None if snapshot_path is None else SnapshotPlace(snapshot_path)
        try:
            if snapshot_path is not None:
                for note in self._call(self._server.recover, "recover"):
                    warnings.warn(note, RuntimeWarning, stacklevel=2)
            if host is not None:
                name = f"[{host}]" if ":" in host else host
                scheme = "tcp" if tls_certificate is None else "tls"
                files = [os.fspath(each or "") for each in (tls_certificate, tls_key)]
                taken = self._server.listen_tcp(host, port, *files)
                self.addresses.append(f"{scheme}://{name}:{taken}")
                if udp_port is not None:
                    self.addresses.append(f"udp://{name}:{self._server.listen_udp(host, udp_port)}")
            if unix_path is not None:
                self._server.listen_unix(os.fspath(unix_path))
                self.addresses.append(f"unix:{os.fspath(unix_path)}")
            if shm_path is not None:
                self._server.listen_shared(os.fspath(shm_path))
                self.addresses.append(f"shm:{os.fspath(shm_path)}")
            if dpdk is not None:
                self.addresses += self._server.listen_dpdk(
                    list(dpdk), dpdk_address, dpdk_port, dpdk_mtu, in_network
                )
        except BaseException:
            self.close()
            raise
        self._server.start()

    @property
    def address(self) -> str:
        """First of the addresses."""
        return self.addresses[0]

    def open_link(self) -> Any:
        """Return a link of the native module, for a client in this process."""
        return self._server.open_link()

    def stats(self) -> dict[str, Any]:
        """Return the counters of `wire.SERVER_COUNTS`, and under "tables" those of each table.

        With UDP or DPDK, "datagrams" has the datagram counters; with DPDK, "network" has the
        counters of its ports. With a log, "log" has its bytes since the last snapshot, and under
        "trouble" why changes cannot be logged and are refused, or "". "draining" is true once a
        client has asked for the server's end.
        """
        return self._server.stats()

    def slow_requests(self) -> list[dict[str, Any]]:
        """Return the requests since the last call that took `slow_us` microseconds or more.

        Of the newest 1,000: "time" in seconds from 1970, "seconds" that the server took without
        waiting for a limiter, "operation", "table" (its number, None without), "bytes", "session".
        """
        return [
            {
                "time": at / 1e3,
                "seconds": us / 1e6,
                "operation": wire.Op(op).name.lower(),
                "table": None if table == wire.NO_TABLE else table,
                "bytes": size,
                "session": session,
            }
            for at, us, op, table, size, session in self._server.slow_requests()
        ]

    def snapshot(self) -> None:
        """Write a snapshot and wait until it is on disk; clients are served meanwhile.

        After `stop`, one that is being written is finished first.

        Raises:
          SnapshotFailed: without a snapshot path, if one is being written, or the disk is full.
        """
        self._call(self._server.snapshot, "snapshot")

    def _call(self, method: Any, what: str) -> Any:
        try:
            return method()
        except self._error as error:
            message, status = error.args
            raise error_of(status, what, message) from error

    def stop(self) -> None:
        """End all connections, and serve no further request. Idempotent.

        A `snapshot` after it has all that was acknowledged.
        """
        self._server.stop()

    def close(self) -> None:
        """End all connections, without a snapshot. Idempotent."""
        self.stop()
        if self._place is not None:
            self._place.close()


def _set_limit(settings: Any, name: str, value: int) -> None:
    names = [each for each in dir(settings) if type(getattr(settings, each)) is int]
    if name not in names:
        raise ValueError(f"a limit must be one of {', '.join(names)}, got {name!r}")
    try:
        setattr(settings, name, value)
    except TypeError as error:  # also of a number that its type does not hold
        raise ValueError(f"{name} must be a whole number from 0, got {value!r}") from error
