"""Ctrl-C and SIGTERM as a wish that is heard between two steps of a program."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def deferred() -> Iterator[Callable[[], bool]]:
    """Keep SIGINT and SIGTERM from stopping the program; the second one does what it always did.

    A signal that the parent ignores stays ignored, as SIGINT behind `&` in a script: SIGTERM stops
    such a training. Outside the main thread, where Python runs no handlers, this does nothing.

    Yields:
      Whether a signal has come.
    """
    came: list[int] = []
    before: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def hear(number: int, frame: Any) -> None:
        came.append(number)
        restore()

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler not in (signal.SIG_IGN, None):
                before[number] = handler
                signal.signal(number, hear)
    try:
        yield lambda: bool(came)
    finally:
        restore()
