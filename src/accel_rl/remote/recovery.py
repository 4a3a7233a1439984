"""Connections that wait for a server that is restarted."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from accel_rl.remote.closing import Closing
from accel_rl.remote.errors import ConnectionLost, NoSuchTable, OutcomeUnknown

T = TypeVar("T")
R = TypeVar("R")

PAUSE = 0.05  # seconds between attempts to connect


def retry_connect(
    connect: Callable[[], T], seconds: float, should_continue: Callable[[], bool] = lambda: True
) -> T:
    """Call `connect` until the server can be reached.

    Raises:
      ConnectionLost: if it cannot be within so many seconds, or `should_continue` returns False.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return connect()
        except (ConnectionLost, NoSuchTable):
            if not should_continue() or time.monotonic() + PAUSE > until:
                raise
        time.sleep(PAUSE)


class Lane(Closing, Generic[T]):
    """Table with a connection of its own, opened again if its server comes back without it.

    Args:
      connect: returns what `close` closes, and the table.
      seconds: for which a request may wait for a lost server; 0: none is reopened.
    """

    def __init__(self, connect: Callable[[], tuple[Closing, T]], seconds: float) -> None:
        self._connect, self._seconds = connect, seconds
        self._lock = threading.Lock()
        self._closed = False
        self._end, self.table = retry_connect(connect, seconds)

    def call(self, request: Callable[[T], R]) -> R:
        """Return the request's result; repeat it if the lost server certainly did not execute it.

        Raises:
          OutcomeUnknown: if the server may have executed the request.
          ConnectionLost: if the server stays away, or the lane is closed.
        """
        until = time.monotonic() + self._seconds
        while True:
            table = self.table
            try:
                return request(table)
            except OutcomeUnknown:  # the client connects again with its next request
                raise
            except (ConnectionLost, NoSuchTable):
                if self._closed or time.monotonic() >= until:
                    raise
            self._reopen(table, until - time.monotonic())

    def _reopen(self, lost: T, seconds: float) -> None:
        """Replace a lost table, unless another thread has."""
        with self._lock:
            if self.table is not lost or self._closed:
                return
            self._end.close()
            self._end, self.table = retry_connect(self._connect, seconds, lambda: not self._closed)
            if self._closed:  # `close` did not wait for the new connection
                self._end.close()

    def close(self) -> None:
        """End the session. Idempotent."""
        self._closed = True
        self._end.close()
