"""Replay servers on this machine that are started again where they end."""

import contextlib
import threading
import warnings
from pathlib import Path
from typing import Any

from accel_rl.arguments import whole
from accel_rl.remote.closing import Closing
from accel_rl.remote.process import ReplayServerProcess

LOOK = 0.2  # seconds between polls of the servers


class LocalServers(Closing):
    """Replay servers in child processes on Unix sockets, each restarted at its address.

    Without a `snapshot_folder` a restarted server is empty: clients create their tables again, and
    actors fill them.

    Args:
      folder: of the sockets, which only this user may open.
      number: of servers.
      secret: shared secret, or None.
      restarts: total number of restarts, each with a RuntimeWarning.
      snapshot_folder: folder of the servers' snapshots and logs, with which they begin; None: none.

    Attributes:
      addresses: of the servers, in order.
      running: server processes, in order.
      restarted: number of restarts so far.
    """

    def __init__(
        self,
        folder: Path,
        number: int,
        *,
        secret: bytes | None = None,
        restarts: int = 0,
        snapshot_folder: Path | None = None,
    ) -> None:
        """Start the servers, and wait until they listen."""
        whole("number", number, 1)
        self._restarts, self.restarted = whole("restarts", restarts, 0), 0
        self._folder, self._secret, self._snapshot_folder = folder, secret, snapshot_folder
        self._gone: str | None = None
        self._closing = threading.Event()
        self.running: list[ReplayServerProcess] = []
        try:
            for each in range(number):
                self.running.append(self._start(each))
        except BaseException:
            self._stop()
            raise
        self.addresses = [server.address for server in self.running]
        self._watch = threading.Thread(target=self._look, name="servers", daemon=True)
        self._watch.start()

    def gone(self) -> str | None:
        """Return how a server ended that is not restarted, else None."""
        return self._gone

    def close(self) -> None:
        """End the servers. Idempotent."""
        if not self._closing.is_set():
            self._closing.set()
            self._watch.join()
            self._stop()

    def _start(self, number: int) -> ReplayServerProcess:
        files: dict[str, Any] = {}
        if self._snapshot_folder is not None:
            path = self._snapshot_folder / f"{number}.snapshot"
            files = {"snapshot_path": path, "durability": "log"}
        path = self._folder / str(number)
        return ReplayServerProcess(None, unix_path=path, secret=self._secret, **files)

    def _stop(self) -> None:
        for server in self.running:
            server.close()

    def _look(self) -> None:
        while self._gone is None and not self._closing.wait(LOOK):
            for number, server in enumerate(self.running):
                if (code := server.process.poll()) is not None:
                    self._replace(number, code)

    def _replace(self, number: int, code: int) -> None:
        """Restart an ended server, or record its end; then warn."""
        how = f"server {number} ended with exit code {code}"
        self.running[number].close()
        while self.restarted < self._restarts and not self._closing.is_set():
            self.restarted += 1
            try:
                self.running[number] = self._start(number)
            except Exception as error:  # it may be killed while it starts, too
                how = f"{how}, then {error}"
                continue
            with contextlib.suppress(RuntimeWarning):  # a filter may turn it into an error
                with_what = "empty" if self._snapshot_folder is None else "with what it logged"
                warnings.warn(
                    f"{how}: it is started again, {with_what}", RuntimeWarning, stacklevel=2
                )
            return
        self._gone = how
