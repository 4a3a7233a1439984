"""Thread pool that does not delay the exit of the process."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class DaemonPool:
    """Thread pool of daemon threads; unlike `ThreadPoolExecutor`, not joined at exit.

    `submit` is not thread-safe.

    Args:
      threads: most threads; each `submit` starts one until there are as many.
      name: of the threads.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._left, self._name = threads, name
        self._started = 0
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], object]] | None] = (
            queue.SimpleQueue()
        )

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Run the call in the next free thread."""
        future: Future[T] = Future()
        self._calls.put((future, call))
        if self._left:
            self._left -= 1
            self._started += 1
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def close(self) -> None:
        """End the threads after the submitted calls; do not wait."""
        for _ in range(self._started):
            self._calls.put(None)
        self._left = self._started = 0

    def _work(self) -> None:
        while (work := self._calls.get()) is not None:
            future, call = work
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
            del work, future, call  # or their objects would live until the next call
