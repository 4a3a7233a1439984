"""Threads that work for others and hold up the end of no process."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class DaemonPool:
    """As a `ThreadPoolExecutor`, whose threads a process would wait for at its end; these not.

    For one thread at a time to submit.

    Args:
      threads: the most there are; each is started with a call.
      name: of the threads.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._left, self._name = threads, name
        self._started = 0
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = (
            queue.SimpleQueue()
        )

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Has a thread make the call, as soon as one is free."""
        future: Future[T] = Future()
        self._calls.put((future, call))
        if self._left:
            self._left -= 1
            self._started += 1
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def close(self) -> None:
        """Ends threads once they have made their calls; does not wait."""
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
            del work, future, call  # or what they hold would live until the next call
