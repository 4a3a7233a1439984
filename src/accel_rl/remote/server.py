"""The replay memory server, in a thread of this process."""

import os
from collections.abc import Sequence
from typing import Any, Literal

from accel_rl.arguments import instance, whole
from accel_rl.remote.closing import Closing
from accel_rl.remote.errors import error_of
from accel_rl.remote.holding import SnapshotPlace
from accel_rl.remote.module import native

LEAST_SECRET_BYTES = 16
Idle = Literal["block", "spin", "yield", "sleep"]


class ReplayServer(Closing):
    """A replay memory server, in a thread that Python does not slow.

    It listens on TCP, UDP, a Unix socket and for clients that share memory with it, on what it is
    told of these. Clients in this process may be given the server in place of an address.

    Attributes:
      addresses: what clients connect to: "tcp://host:port", or "tls://host:port" with a
        certificate; "udp://host:port", "unix:/path", "shm:/path"; with DPDK
        "memif:/path?id=number", too.
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
        dpdk: Sequence[str] | None = None,
        dpdk_address: str = "169.254.77.1",
        dpdk_port: int = 7077,
        in_network: bool = False,
        idle: Idle = "block",
        **settings: int,
    ) -> None:
        """Starts serving.

        Args:
          host: address in numbers to listen on for TCP; None: no TCP. One that other machines can
            reach needs a secret.
          port: 0: a free one.
          udp_port: for datagrams, on the same host; 0: a free one, None: no UDP.
          unix_path: of a Unix socket, which only this user may open; None: none.
          shm_path: of another one, where clients on this machine are handed memory to talk through.
          secret: what clients must prove to know, 16 bytes at least; it is never sent.
          tls_certificate: a PEM file, chain included; None: what goes over TCP can be read on its
            way. With it, TCP is TLS 1.3.
          tls_key: the PEM file of its key, without a password.
          snapshot_path: a file for snapshots; if it is there, the server begins with what it holds.
            Its folder is made where there is none. No other server may have it at that time.
          dpdk: arguments of DPDK's environment, as ["--no-huge", "--vdev=net_memif0,..."]: all
            ports that they name are served, which takes another `idle` than "block". None: no
            DPDK. Ports beyond memif sockets need a secret. See docs/replay-dpdk.md.
          dpdk_address: IPv4 address of the server at those ports.
          dpdk_port: and its UDP port.
          in_network: DPDK's two ports are in a network's path: what comes in at one and is not for
            this server leaves by the other one.
          idle: what the serving thread does when there is nothing to do. "block": looks again for
            `linger_us` microseconds after a request, 50 unless set, then waits until the kernel
            says that something came. "spin": looks again at once, for the shortest answers,
            and takes a core of its own. "yield": looks again when other threads have had the core.
            "sleep": looks again after `sleep_us` microseconds, 50 unless set.
          **settings: limits, by the names of `ServerSettings`: frame_bytes, batch, table_bytes,
            tables, mailbox_bytes, mailbox_names, sessions, connections, waiting, waiting_bytes,
            buffer_bytes, reply_bytes, unread_bytes, handshakes; session_timeout_ms, handshake_ms,
            frame_ms, write_ms, idle_ms; sleep_us, linger_us, ring_bytes.

        Raises:
          TypeError: if an argument is of another type.
          ValueError: if a port is out of range, an address cannot be listened on, a setting is
            unknown, a secret missing, a certificate is not one, or the server was built without
            OpenSSL, which secrets and TLS take.
          SnapshotFailed: if the snapshot is damaged, of a later version, or another server's, or
            none can be written there.
          ImportError: if the server was not built.
        """
        module = native()
        for name, number in (("port", port), ("udp_port", udp_port)):
            if number is not None:
                whole(name, number, 0, (1 << 16) - 1)
        if secret is not None:
            instance("secret", secret, bytes)
        if secret is not None and len(secret) < LEAST_SECRET_BYTES:
            raise ValueError(
                f"secret must have {LEAST_SECRET_BYTES} bytes or more, got {len(secret)}"
            )
        if in_network and dpdk is None:
            raise ValueError("in_network takes dpdk, whose two ports are in the path")
        if not 0 < dpdk_port < 1 << 16:
            raise ValueError(f"dpdk_port must be from 1 to 65535, got {dpdk_port}")
        if (tls_certificate is None) != (tls_key is None) or (tls_key and host is None):
            raise ValueError("tls_certificate, tls_key and host must be given together")
        if host is None and udp_port is not None:
            raise ValueError(f"host must say where to listen on udp_port {udp_port}, got None")
        self._error = module.Error
        given = module.ServerSettings()
        given.idle = idle
        for name, value in settings.items():
            if not hasattr(given, name):
                raise ValueError(f"there is no setting {name!r}")
            setattr(given, name, value)
        if snapshot_path is not None:
            given.snapshot_path = os.fspath(snapshot_path)
        self._server = module.Server(given, secret)
        self.addresses: list[str] = []
        self._place = None if snapshot_path is None else SnapshotPlace(snapshot_path)
        try:
            if snapshot_path is not None and os.path.exists(snapshot_path):
                self._call(self._server.restore, "restore", os.fspath(snapshot_path))
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
                    list(dpdk), dpdk_address, dpdk_port, in_network
                )
        except BaseException:
            self.close()
            raise
        self._server.start()

    @property
    def address(self) -> str:
        """The first of the addresses.

        Raises:
          ValueError: if the server listens nowhere.
        """
        if not self.addresses:
            raise ValueError("the server has no address: host was None, and no path was given")
        return self.addresses[0]

    def open_link(self) -> Any:
        """A link for a client in this process, as the native module makes it."""
        return self._server.open_link()

    def stats(self) -> dict[str, Any]:
        """Counts of `wire.SERVER_COUNTS`, and under "tables" those of each table by its name.

        With UDP or DPDK, "datagrams" has what their datagrams counted; with DPDK, "network" has
        what its ports counted.
        """
        return self._server.stats()

    def snapshot(self) -> None:
        """Writes a snapshot and waits until it is on the disk; clients are served meanwhile.

        Raises:
          SnapshotFailed: if there is no path for it, one is being written, or the disk is full.
        """
        self._call(self._server.snapshot, "snapshot")

    def _call(self, method: Any, what: str, *arguments: Any) -> None:
        try:
            method(*arguments)
        except self._error as error:
            message, status = error.args
            raise error_of(status, what, message) from error

    def close(self) -> None:
        """Ends all connections, without a snapshot; a second time does nothing."""
        self._server.stop()
        if self._place is not None:
            self._place.close()
