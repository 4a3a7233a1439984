"""Ctrl-C and SIGTERM handled between two segments of a training."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def deferred() -> Iterator[Callable[[], bool]]:
    """Defer the first SIGINT or SIGTERM; the second one has its usual effect.

    A signal that the parent ignores stays ignored, as SIGINT behind `&` in a script: SIGTERM stops
    such a training. Outside the main thread, where Python runs no handlers, this does nothing.

    Yields:
      A function that returns whether a signal has come.
    """
    came: list[int] = []
    before: dict[int, signal.Handlers | Callable[[int, FrameType | None], object] | int | None] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def hear(number: int, frame: FrameType | None) -> None:
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
